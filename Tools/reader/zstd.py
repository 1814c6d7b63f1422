"""Zstandard: what a frame must look like here, and two ways to have it decompressed."""

import ctypes
import ctypes.util
import os
import subprocess
import tempfile

from .faults import InputOutput

_MAGIC = 0xFD2FB528
# Where Homebrew has its libraries, which macOS does not search by itself.
_PLACES = ("libzstd.so.1", "/opt/homebrew/lib/libzstd.dylib", "/usr/local/lib/libzstd.dylib")


def frame_fault(data):
    """Why these bytes are not exactly one frame as the format wants it; None when they are."""
    if len(data) < 6 or int.from_bytes(data[:4], "little") != _MAGIC:
        return "no zstd frame"
    descriptor = data[4]
    if descriptor & 3:
        return "the zstd frame has a dictionary id"
    if descriptor & 4:
        return "the zstd frame has a content checksum"
    if descriptor & 8:
        return "the zstd frame has a reserved bit set"
    is_single = descriptor >> 5 & 1
    at = 5 + (1 - is_single) + (is_single, 2, 4, 8)[descriptor >> 6]
    while True:
        if at + 3 > len(data):
            return "the zstd frame is cut"
        block = int.from_bytes(data[at : at + 3], "little")
        # A block of type 1 is one byte that is repeated.
        at += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
        if block & 1:
            break
    return None if at == len(data) else "the zstd frame has another length"


def decompressor():
    """The library, or the program when there is none (or READ_STORE_ZSTD=command asks for it)."""
    if os.environ.get("READ_STORE_ZSTD") != "command":
        for name in (*_PLACES, ctypes.util.find_library("zstd")):
            try:
                if name:
                    return _Library(ctypes.CDLL(name))
            except (OSError, AttributeError):
                continue
    return _Command()


class _Library:
    """libzstd, called directly: thousands of blocks need no process each."""

    prefers_many = False

    def __init__(self, library):
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        data = ctypes.c_char_p
        self._create = library.ZSTD_createDDict
        self._create.restype, self._create.argtypes = pointer, [data, size]
        self._with = library.ZSTD_decompress_usingDDict
        self._with.restype = size
        self._with.argtypes = [pointer, pointer, size, data, size, pointer]
        self._without = library.ZSTD_decompressDCtx
        self._without.restype = size
        self._without.argtypes = [pointer, pointer, size, data, size]
        self._is_error = library.ZSTD_isError
        self._is_error.restype, self._is_error.argtypes = ctypes.c_uint, [size]
        library.ZSTD_createDCtx.restype = pointer
        self._context = library.ZSTD_createDCtx()
        if not self._context:
            raise InputOutput("libzstd has no memory")
        # Dictionaries stay for the life of the process: there is one a segment.
        self._dictionaries = {}

    def decompress(self, frames, dictionary=None):
        """The content of each frame, given as (bytes, length of the content), or None."""
        return [self._one(data, length, dictionary) for data, length in frames]

    def _one(self, data, length, dictionary):
        buffer = ctypes.create_string_buffer(length)
        if dictionary is None:
            count = self._without(self._context, buffer, length, data, len(data))
        else:
            prepared = self._dictionaries.get(dictionary)
            if prepared is None:
                prepared = self._create(dictionary, len(dictionary))
                if not prepared:
                    return None
                self._dictionaries[dictionary] = prepared
            count = self._with(self._context, buffer, length, data, len(data), prepared)
        return None if self._is_error(count) or count != length else buffer.raw


class _Command:
    """The program zstd, which takes many frames behind each other in one call."""

    prefers_many = True

    def decompress(self, frames, dictionary=None):
        """The content of each frame, given as (bytes, length of the content), or None."""
        total = sum(length for _, length in frames)
        joined = self._run(b"".join(data for data, _ in frames), total, dictionary)
        if joined is not None:
            contents, at = [], 0
            for _, length in frames:
                contents.append(joined[at : at + length])
                at += length
            return contents
        if len(frames) == 1:
            return [None]
        # One of them is broken; each by itself tells which.
        return [self.decompress([frame], dictionary)[0] for frame in frames]

    def _run(self, data, total, dictionary):
        """The program's output for the bytes, if it is of that length."""
        command = ["zstd", "-d", "-c", "-q"]
        with tempfile.TemporaryFile() as source, tempfile.NamedTemporaryFile() as prepared:
            source.write(data)
            source.seek(0)
            if dictionary is not None:
                prepared.write(dictionary)
                prepared.flush()
                command += ["-D", prepared.name]
            try:
                process = subprocess.Popen(
                    command, stdin=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            except FileNotFoundError:
                raise InputOutput("neither libzstd nor the program zstd is there") from None
            with process:
                # One byte more shows what is too long, however long it would become.
                content = process.stdout.read(total + 1)
                if len(content) > total:
                    process.kill()
        return content if process.returncode == 0 and len(content) == total else None
