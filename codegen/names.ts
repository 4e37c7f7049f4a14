const identifier = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

/** Whether a text can stand as a name in TypeScript, reserved words aside. */
export function isIdentifier(text: string): boolean {
  return identifier.test(text);
}

/** A string literal. Only characters that every editor shows are left as they are. */
export function quote(text: string): string {
  return JSON.stringify(text).replaceAll(/[\u007f-\u009f\u2028\u2029\ufeff\p{Surrogate}]/gu, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** A string literal of bytes, one character for each. */
export function quoteBytes(bytes: string): string {
  let body = "";
  for (const byte of bytes) {
    if (byte === '"' || byte === "\\") body += `\\${byte}`;
    else if (byte >= " " && byte <= "~") body += byte;
    else body += `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`;
  }
  return `"${body}"`;
}

/** A property's name where an object or an interface declares it. */
export function propertyKey(property: string): string {
  return isIdentifier(property) ? property : quote(property);
}

const reservedWords = new Set(
  `arguments await break case catch class const continue debugger default delete do else enum eval export extends false finally for
  function if implements import in instanceof interface let new null package private protected public return static super switch this
  throw true try typeof undefined var void while with yield`.split(/\s+/),
);

/** Whether a name is a word of the language, or one that strict code must not define. */
export function isReserved(name: string): boolean {
  return reservedWords.has(name);
}

/**
 * Names for local variables, one for each property: the property itself where that is a name, and none that the code
 * around it uses.
 */
export function localNames(properties: readonly string[], used: ReadonlySet<string>): string[] {
  const taken = new Set([...used, ...properties]);
  return properties.map((property) => {
    if (isIdentifier(property) && !reservedWords.has(property) && !used.has(property)) return property;
    const stem = property.replaceAll(/[^A-Za-z0-9$_]/g, "").replace(/^(?=\d|$)/, "field");
    let name = `${stem}Value`;
    for (let n = 2; taken.has(name) || reservedWords.has(name); n++) name = `${stem}Value${n}`;
    taken.add(name);
    return name;
  });
}

/** Documentation as ts-morph takes it: nothing in it can end the comment. */
export function docText(text: string): string {
  return text.replaceAll("*/", "*\\/").replaceAll(/\r\n?/g, "\n").trim();
}
