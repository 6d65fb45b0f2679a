"""Reads ONNX models and tensors with numpy alone.

Covers as much of the protobuf wire format as models of single operators need.
"""
import struct
import types

import numpy

# onnx.TensorProto.DataType
TYPES = {1: "<f4", 2: "<u1", 3: "<i1", 6: "<i4", 7: "<i8", 9: "<u1", 10: "<f2", 11: "<f8"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """Yields pairs (number, value) of a message; a value is an integer or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            if wire == 2:
                size, at = varint(data, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
            else:
                raise ValueError(f"wire type {wire}")
            value = data[at : at + size]
            at += size
        yield key >> 3, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def integers(value):
    """Returns a repeated integer field, packed or one at a time, as a list."""
    if isinstance(value, int):
        return [signed(value)]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(signed(number))
    return found


def tensor(data):
    """Returns name and array of a TensorProto."""
    shape, kind, name, raw, listed, other = [], 0, "", None, b"", []
    for number, value in fields(data):
        if number == 1:
            shape += integers(value)
        elif number == 2:
            kind = value
        elif number == 8:
            name = value.decode()
        elif number == 9:
            raw = value
        elif number in (4, 10):
            listed += value
        elif number in (5, 7):
            other += integers(value)
    if raw is not None or listed:
        array = numpy.frombuffer(raw if raw is not None else listed, TYPES[kind])
    else:
        array = numpy.array(other, TYPES[kind])
    return name, array.reshape(shape)


def attribute(data):
    name, value = "", None
    found = {}
    for number, content in fields(data):
        if number == 1:
            name = content.decode()
        elif number == 2:
            value = struct.unpack("<f", content)[0]
        elif number == 3:
            value = signed(content)
        elif number == 4:
            value = content.decode()
        elif number == 5:
            value = tensor(content)[1]
        elif number == 7:  # packed, or one at a time
            found.setdefault("floats", []).extend(struct.unpack(f"<{len(content) // 4}f", content))
        elif number == 8:
            found.setdefault("ints", []).extend(integers(content))
    return name, found.get("ints", found.get("floats", value))


def node(data):
    result = types.SimpleNamespace(operator="", inputs=[], outputs=[], attributes={})
    for number, value in fields(data):
        if number == 1:
            result.inputs.append(value.decode())
        elif number == 2:
            result.outputs.append(value.decode())
        elif number == 4:
            result.operator = value.decode()
        elif number == 5:
            name, content = attribute(value)
            result.attributes[name] = content
    return result


def first_text(data, wanted):
    return next((value.decode() for number, value in fields(data) if number == wanted), "")


def model(path):
    """Returns a model's graph: opset, nodes, constants by name, names of inputs and outputs."""
    result = types.SimpleNamespace(opset=1, nodes=[], constants={}, inputs=[], outputs=[])
    for number, value in fields(path.read_bytes()):
        if number == 8 and first_text(value, 1) in ("", "ai.onnx"):
            result.opset = next((version for field, version in fields(value) if field == 2), 1)
        if number != 7:
            continue
        for part, content in fields(value):
            if part == 1:
                result.nodes.append(node(content))
            elif part == 5:
                name, array = tensor(content)
                result.constants[name] = array
            elif part in (11, 12):
                (result.inputs if part == 11 else result.outputs).append(first_text(content, 1))
    result.inputs = [name for name in result.inputs if name not in result.constants]
    return result
