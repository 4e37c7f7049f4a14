"""The structs of the engine's release as real msgspec classes, behind JSON lines.

    python msgspec_service.py FOLDER_OF_structs_0_1_0.py

One request a line on stdin, one answer a line on stdout, in order. Values travel in the notation of the reference
vectors: what JSON cannot say is an object with one key that starts with a dollar sign. Messages are hexadecimal.
"""

import datetime
import enum
import importlib
import json
import random
import struct
import sys

import msgspec
from msgspec import inspect

sys.path.insert(0, sys.argv[1])
wire = importlib.import_module("structs_0_1_0")

REQUESTS = {cls.__name__: cls for cls in wire.CONTROL_REQUESTS}
REPLIES = {cls.__name__: cls for cls in wire.CONTROL_REPLIES}
HANDSHAKE = {cls.__name__: cls for cls in wire.HANDSHAKE}
STRUCTS = {**REQUESTS, **REPLIES, **HANDSHAKE}
DATA_PLANE = {
    cls.__name__: cls
    for cls in (
        wire.TokenizedGenerateReqInput,
        wire.EncodeRequest,
        wire.BatchTokenIDOutSlim,
        wire.SamplingParams,
        wire.SessionParams,
        wire.MultimodalInputs,
        wire.MultimodalDataItem,
        wire.ShmTensorHandle,
    )
}
CODEC = wire.Codec()
# what the crate and the schema narrow, and Python does not
TOKEN_IDS = {"input_ids", "token_ids_logprob", "input_multi_ids", "input_ids_unpadded", "output_ids", "output_token_logprobs_idx"}
TOKEN_IDS |= {"input_token_logprobs_idx", "input_top_logprobs_idx", "output_top_logprobs_idx"}
UNSIGNED = {"bootstrap_room", "hash"}
SAFE = 2**53 - 1
ENCODER = msgspec.msgpack.Encoder()
DECODERS = {name: msgspec.msgpack.Decoder(cls) for name, cls in STRUCTS.items()}
DECODERS["requests"] = msgspec.msgpack.Decoder(wire.CONTROL_REQUEST_UNION)
DECODERS["replies"] = msgspec.msgpack.Decoder(wire.CONTROL_REPLY_UNION)
UTC = datetime.timezone.utc
TIMES = {"naive": datetime.datetime(2026, 8, 22, 1, 2, 3, 456789), "aware": datetime.datetime(2026, 8, 22, 1, 2, 3, 456789, UTC)}


# ---- the notation


def plain_key(key):
    return isinstance(key, str) and not key.startswith("$") and key != "__proto__" and not key.isdigit()


def noted(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, int):
        return value if abs(value) <= SAFE else {"$int": str(value)}
    if isinstance(value, float):
        if value != value:
            return {"$float": "NaN"}
        if value in (float("inf"), float("-inf")):
            return {"$float": "Infinity" if value > 0 else "-Infinity"}
        return {"$float": repr(value)} if value == int(value) else value
    if isinstance(value, bytes):
        return {"$bytes": value.hex()}
    if isinstance(value, msgspec.msgpack.Ext):
        return {"$ext": [value.code, bytes(value.data).hex()]}
    if isinstance(value, wire.Tensor):
        return {"dtype": value.dtype, "shape": value.shape, "data": noted(value.data)}
    if isinstance(value, (list, tuple, set)):
        return [noted(item) for item in value]
    if isinstance(value, dict):
        if all(plain_key(key) for key in value):
            return {key: noted(item) for key, item in value.items()}
        return {"$map": [[noted(key), noted(item)] for key, item in value.items()]}
    if isinstance(value, msgspec.Struct):
        return {field: noted(getattr(value, field)) for field in value.__struct_fields__}
    if isinstance(value, datetime.datetime):
        return {"$time": value.isoformat()}
    raise TypeError(f"no notation for {type(value)}")


def meant(value):
    if isinstance(value, list):
        return [meant(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (key, content), = value.items()
        if key == "$int":
            return int(content)
        if key == "$float":
            return float(content)
        if key == "$bytes":
            return bytes.fromhex(content)
        if key == "$ext":
            return msgspec.msgpack.Ext(content[0], bytes.fromhex(content[1]))
        if key == "$map":
            return {meant(name): meant(item) for name, item in content}
        if key == "$time":
            return TIMES[content]
    return {key: meant(item) for key, item in value.items()}


# ---- messages from a seed


class Maker:
    """Values of the types that the classes declare; notes whether a typed integer left JavaScript's safe range."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.unsafe = False
        # the field that is being made
        self.field = ""

    def struct(self, cls):
        given = {}
        for field in inspect.type_info(cls).fields:
            self.field = field.name
            # defaults are values too: leave some to the class
            if field.required or self.random.random() < 0.7:
                given[field.name] = self.value(field.type)
        return cls(**given)

    def value(self, kind):
        pick = self.random
        match kind:
            case inspect.NoneType():
                return None
            case inspect.BoolType():
                return pick.random() < 0.5
            case inspect.IntType() if self.field in TOKEN_IDS:
                return pick.choice((pick.randrange(-(2**31), 2**31), pick.randrange(200_000), pick.randrange(-200, 200)))
            case inspect.IntType() if self.field in UNSIGNED:
                return pick.choice((pick.getrandbits(64), pick.getrandbits(40), pick.randrange(300)))
            case inspect.IntType():
                number = self.integer() if pick.random() < 0.02 else self.safe()
                self.unsafe = self.unsafe or abs(number) > SAFE
                return min(max(number, -(2**63)), 2**63 - 1)
            case inspect.FloatType():
                return self.float()
            case inspect.StrType():
                return self.text()
            case inspect.BytesType():
                return self.bytes()
            case inspect.ListType(item_type=item):
                return [self.value(item) for _ in range(self.length())]
            case inspect.SetType(item_type=item):
                return {self.value(item) for _ in range(self.length())}
            case inspect.VarTupleType(item_type=item):
                return tuple(self.value(item) for _ in range(self.length()))
            case inspect.TupleType(item_types=items):
                return tuple(self.value(item) for item in items)
            case inspect.CustomType(cls=wire.Tensor):
                return self.tensor()
            case inspect.DictType(key_type=key, value_type=item):
                return {self.key(key): self.value(item) for _ in range(self.length())}
            case inspect.UnionType(types=types):
                return self.value(pick.choice(types))
            case inspect.LiteralType(values=values):
                return pick.choice(values)
            case inspect.EnumType(cls=cls):
                return pick.choice(list(cls))
            case inspect.StructType(cls=cls):
                return self.struct(cls)
            case inspect.AnyType():
                return self.any(3)
        raise TypeError(f"no values for {kind}")

    def tensor(self):
        pick = self.random
        dtype, size = pick.choice((("uint8", 1), ("float16", 2), ("float32", 4), ("int64", 8)))
        shape = pick.choice(((), (0,), (1,), (2, 3), (31,), (32,), (16, 8), (1, 255), (16, 16), (257,), (3, 5, 40)))
        for side in shape:
            size *= side
        return wire.Tensor(dtype, shape, pick.randbytes(size))

    def length(self):
        return self.random.choice((0, 1, 1, 2, 2, 3, 4, 15, 16, 17)) if self.random.random() < 0.3 else self.random.randrange(4)

    def safe(self):
        pick = self.random
        edge = pick.choice((0, 2**5, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, SAFE - 1)) + pick.randrange(-1, 2)
        return pick.choice((1, -1)) * pick.choice((edge, pick.getrandbits(pick.randrange(1, 54)), pick.randrange(100)))

    def integer(self):
        pick = self.random
        number = pick.choice((pick.getrandbits(64), SAFE, SAFE + 1, 2**63 - 1, 2**63, 2**64 - 1))
        return number if pick.random() < 0.5 else -min(number, 2**63)

    def float(self):
        pick = self.random
        if pick.random() < 0.4:
            return pick.uniform(-1e6, 1e6)
        if pick.random() < 0.3:
            bits = struct.unpack("<d", pick.randbytes(8))[0]
            # of the NaNs only the usual one: JavaScript keeps no other
            return bits if bits == bits else float("nan")
        return pick.choice((0.0, -0.0, 1.0, -1.0, 1e300, 2.0**53, 5e-324, float("nan"), float("inf"), float("-inf"), 0.1, float(pick.randrange(1000))))

    def text(self):
        pick = self.random
        length = pick.choice((31, 32, 33, 255, 256, 300)) if pick.random() < 0.08 else pick.randrange(12)
        if pick.random() < 0.002:
            length = 65536
        ranges = pick.choice(((32, 127), (32, 127), (0, 256), (0x0, 0x2FFF), (0xE000, 0x10000), (0x1F300, 0x1FA00)))
        return "".join(chr(pick.randrange(*ranges)) for _ in range(length))

    def bytes(self):
        pick = self.random
        return pick.randbytes(pick.choice((255, 256, 257)) if pick.random() < 0.05 else pick.randrange(20))

    def key(self, kind):
        if not isinstance(kind, inspect.StrType) and self.random.random() < 0.5:
            return self.random.choice((None, True, -1, 7, self.integer(), 1.5, self.bytes(), self.text()))
        return self.random.choice(("__proto__", "constructor", "toString", "0", "12", "4294967295", "$int", "", self.text(), self.text()))

    def any(self, depth):
        pick = self.random
        kind = pick.randrange(9 if depth > 0 else 7)
        if kind == 0:
            return pick.choice((None, True, False))
        if kind == 1:
            return self.safe()
        if kind == 2:
            return self.integer()
        if kind == 3:
            return self.float()
        if kind == 4:
            return self.text()
        if kind == 5:
            return self.bytes()
        if kind == 6:
            # not -1, which msgspec reads as a time
            return msgspec.msgpack.Ext(pick.choice((0, 1, 3, 5, 72, 127, -2, -128)), pick.randbytes(pick.choice((0, 1, 2, 3, 4, 8, 16, 17, 256))))
        if kind == 7:
            return [self.any(depth - 1) for _ in range(self.length())]
        return {self.key(pick.choice((inspect.AnyType(), inspect.StrType()))): self.any(depth - 1) for _ in range(self.length())}


# ---- requests


def outcome(decoder, message):
    try:
        value = decoder.decode(message)
    except msgspec.MsgspecError as error:
        return {"ok": False, "error": str(error)}
    return {"ok": True, "value": noted(value), "hex": ENCODER.encode(value).hex(), "type": type(value).__name__}


def tried(name, message, **more):
    return {"name": name, "message": message.hex(), **outcome(DECODERS[name], message), **more}


def structs(_):
    return {
        name: {
            "kind": "request" if name in REQUESTS else "reply" if name in REPLIES else "handshake",
            "fields": [
                {"name": field.encode_name, "required": field.required} for field in inspect.type_info(cls).fields
            ],
        }
        for name, cls in STRUCTS.items()
    }


def decode(request):
    decoder = DECODERS[request["decoder"]]
    return [outcome(decoder, bytes.fromhex(message)) for message in request["messages"]]


def make(request):
    made = []
    for index in range(request["count"]):
        maker = Maker(f"{request['seed']} {request['type']} {index}")
        value = maker.struct(STRUCTS[request["type"]])
        made.append({"hex": ENCODER.encode(value).hex(), "value": noted(value), "unsafe": maker.unsafe})
    return made


def construct(request):
    """What the class's own constructor makes of some fields."""
    value = STRUCTS[request["type"]](**{name: meant(item) for name, item in request["fields"].items()})
    return {"hex": ENCODER.encode(value).hex(), "value": noted(value)}


def decode_frames(request):
    outcomes = []
    for frames in request["messages"]:
        try:
            value = CODEC.decode(DATA_PLANE[request["type"]], [bytes.fromhex(frame) for frame in frames])
        except (msgspec.MsgspecError, ValueError) as error:
            outcomes.append({"ok": False, "error": str(error)})
        else:
            outcomes.append({"ok": True, "value": noted(value), "frames": [frame.hex() for frame in CODEC.encode(value)]})
    return outcomes


def make_frames(request):
    made = []
    for index in range(request["count"]):
        maker = Maker(f"{request['seed']} {request['type']} {index}")
        value = maker.struct(DATA_PLANE[request["type"]])
        made.append({"frames": [frame.hex() for frame in CODEC.encode(value)], "value": noted(value), "unsafe": maker.unsafe})
    return made


def raw_of(value):
    """A message as the plain list or dict that it is on the wire."""
    return msgspec.msgpack.decode(ENCODER.encode(value))


def matrix(request):
    """Every given value at the place of every field of every struct, in a message that is valid besides."""
    tries = []
    for name, cls in STRUCTS.items():
        base = Maker("base")
        valid = cls(**{field.name: base.value(field.type) for field in inspect.type_info(cls).fields if field.required})
        for index, field in enumerate(inspect.type_info(cls).fields):
            for value in request["values"]:
                raw = raw_of(valid)
                raw[index + 1 if isinstance(raw, list) else field.encode_name] = meant(value)
                more = {"field": field.encode_name, "given": value, "base": noted(valid)}
                tries.append({**tried(name, ENCODER.encode(raw)), **more})
    return tries


def tails(request):
    """Messages cut after each element, and with elements that no struct has; for maps, without each key and with more."""
    tries = []
    junk = [1, {"a": [None]}, b"xx"]
    for name, cls in STRUCTS.items():
        for index in range(request["count"]):
            raw = raw_of(Maker(f"{request['seed']} tails {index}").struct(cls))
            if isinstance(raw, list):
                variants = [raw[:length] for length in range(len(raw) + 1)] + [raw + junk[:more] for more in (1, 2, 3)]
            else:
                variants = [{key: item for key, item in raw.items() if key != gone} for gone in raw] + [{}, {**raw, "newer": junk}]
            tries += [tried(name, ENCODER.encode(variant)) for variant in variants]
    return tries


def omitting(request):
    """The bytes of a value whose class asks to leave defaults out, which means nothing for positional structs."""
    cls = STRUCTS[request["type"]]
    keen = type(cls)(cls.__name__, (cls,), {}, omit_defaults=True, kw_only=True)
    return {"hex": ENCODER.encode(keen(**{name: meant(item) for name, item in request["fields"].items()})).hex()}


ANSWERS = {
    "structs": structs,
    "decode": decode,
    "make": make,
    "construct": construct,
    "matrix": matrix,
    "tails": tails,
    "omitting": omitting,
    "decode frames": decode_frames,
    "make frames": make_frames,
}

for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = {"answer": ANSWERS[asked["do"]](asked)}
    except Exception as error:  # the test must learn of it, whatever it is
        answer = {"failure": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
