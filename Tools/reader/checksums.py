"""CRC-32C, XXH64 and the hash of keys, from their definitions."""

import struct

from .fields import MASK64


def _crc_tables():
    """The effect of one byte, and that of two, on a CRC-32C register."""
    single = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 * (byte & 1)
        single.append(byte)
    double = []
    for pair in range(65536):
        first = single[pair & 255]
        double.append(single[(first ^ pair >> 8) & 255] ^ first >> 8)
    return single, double


_SINGLE, _DOUBLE = _crc_tables()


def crc32c(data):
    """The CRC-32C (Castagnoli) of the bytes."""
    # Two bytes at a time, which halves the time of a loop that all stored bytes go through.
    pairs = len(data) // 2
    crc = 0xFFFFFFFF
    table = _DOUBLE
    for pair in struct.unpack_from(f"<{pairs}H", data):
        crc = table[(crc ^ pair) & 0xFFFF] ^ crc >> 16
    if len(data) & 1:
        crc = _SINGLE[(crc ^ data[-1]) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


_P1 = 0x9E3779B185EBCA87
_P2 = 0xC2B2AE3D27D4EB4F
_P3 = 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63
_P5 = 0x27D4EB2F165667C5


def _rotated(value, count):
    return (value << count | value >> 64 - count) & MASK64


def xxh64(data, seed=0):
    """The 64-bit xxHash of the bytes."""
    length = len(data)
    at = length & ~31
    seed &= MASK64
    state = seed + _P5 & MASK64
    if at:
        state = _stripes(memoryview(data)[:at], seed)
    state = state + length & MASK64
    while at + 8 <= length:
        word = int.from_bytes(data[at : at + 8], "little")
        word = _rotated(word * _P2 & MASK64, 31) * _P1 & MASK64
        state = _rotated(state ^ word, 27) * _P1 + _P4 & MASK64
        at += 8
    if at + 4 <= length:
        word = int.from_bytes(data[at : at + 4], "little")
        state = _rotated(state ^ word * _P1 & MASK64, 23) * _P2 + _P3 & MASK64
        at += 4
    while at < length:
        state = _rotated(state ^ data[at] * _P5 & MASK64, 11) * _P1 & MASK64
        at += 1
    state = (state ^ state >> 33) * _P2 & MASK64
    state = (state ^ state >> 29) * _P3 & MASK64
    return state ^ state >> 32


def _stripes(data, seed):
    """The state behind all whole stripes of 32 bytes, of which there is at least one."""
    # Written out rather than in a loop over four lanes: all stored bytes go through here.
    p1, p2, mask = _P1, _P2, MASK64
    v1 = seed + p1 + p2 & mask
    v2 = seed + p2 & mask
    v3 = seed
    v4 = seed - p1 & mask
    for a, b, c, d in struct.iter_unpack("<4Q", data):
        v1 = v1 + a * p2 & mask
        v1 = (v1 << 31 | v1 >> 33) * p1 & mask
        v2 = v2 + b * p2 & mask
        v2 = (v2 << 31 | v2 >> 33) * p1 & mask
        v3 = v3 + c * p2 & mask
        v3 = (v3 << 31 | v3 >> 33) * p1 & mask
        v4 = v4 + d * p2 & mask
        v4 = (v4 << 31 | v4 >> 33) * p1 & mask
    state = _rotated(v1, 1) + _rotated(v2, 7) + _rotated(v3, 12) + _rotated(v4, 18) & mask
    for lane in (v1, v2, v3, v4):
        state = (state ^ _rotated(lane * p2 & mask, 31) * p1 & mask) * p1 + _P4 & mask
    return state


def _fold(a, b):
    product = a * b
    return product & MASK64 ^ product >> 64


def key_hash(data, seed):
    """The hash under which an index image finds keys and strings."""
    c0, c1 = 0x2D358DCCAA6C78A5, 0x8BB84B93962EACC9
    c2, c3 = 0x4B33A62ED433D4A3, 0x4D5A2DA51DE1AA47
    count = len(data)

    def read(at, width):
        return int.from_bytes(data[at : at + width], "little")

    mask = _fold(seed ^ c0, c1)
    start = state = _fold(seed ^ c2, c3)
    if count > 16:
        for i in range(0, count - 16, 16):
            state = _fold(read(i, 8) ^ mask, read(i + 8, 8) ^ state)
        a, b = read(count - 16, 8), read(count - 8, 8)
    elif count >= 8:
        a, b = read(0, 8), read(count - 8, 8)
    elif count >= 4:
        a, b = read(0, 4), read(count - 4, 4)
    elif count > 0:
        a, b = data[0] << 16 | data[count // 2] << 8 | data[count - 1], 0
    else:
        a = b = 0
    product = (a ^ mask) * (b ^ state)
    return _fold(product & MASK64 ^ c0 ^ count, product >> 64 ^ start)
