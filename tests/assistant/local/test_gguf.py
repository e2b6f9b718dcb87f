import os
import struct

import pytest

from dragoman.assistant.models.local.gguf import GgufHead, available_memory, check_memory, read_head
from dragoman.errors import ModelFailure


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def field(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def head_of(*fields, version=3, count=None):
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(fields) if count is None else count) + b"".join(fields)


ARCHITECTURE = field("general.architecture", 8, text("llama"))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.gguf"


def test_a_real_file_tells_its_context_and_what_a_token_takes(model_file):
    head = read_head(model_file)
    assert (head.architecture, head.context_length, head.layers) == ("llama", 8192, 30)
    assert head.cache_bytes(1) == 30 * 3 * (64 + 64) * 2


def test_arrays_and_fields_of_all_types_are_passed_over(file):
    array = struct.pack("<IQ", 8, 2) + text("a") + text("b")
    numbers = struct.pack("<IQ", 5, 3) + bytes(12)
    context = field("llama.context_length", 10, struct.pack("<Q", 77))
    file.write_bytes(head_of(field("x", 9, array), field("y", 9, numbers), field("z", 7, b"\1"), ARCHITECTURE, context))
    assert read_head(file).context_length == 77


def test_reading_stops_at_the_tokenizer(file):
    file.write_bytes(head_of(ARCHITECTURE, text("tokenizer.ggml.tokens"), count=3))
    assert read_head(file).architecture == "llama"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"PK\3\4 something else altogether", "is not a GGUF file"),
        (b"", "ends too early"),
        (b"GGUF\3\0", "ends too early"),
        (head_of(version=9), "version"),
        (head_of(), "what kind of model"),
        (head_of(count=1 << 60), "is damaged"),
        (head_of(struct.pack("<Q", 1 << 62)), "is damaged"),
        (head_of(field("x", 99, b"")), "is damaged"),
        (head_of(field("x", 9, struct.pack("<IQ", 8, 1 << 50))), "is damaged"),
        (head_of(field("x", 9, struct.pack("<IQ", 9, 1))), "is damaged"),
        (head_of(ARCHITECTURE, ARCHITECTURE)[:-3], "ends too early"),
    ],
)
def test_what_is_no_model_file_is_refused_by_name(file, content, problem):
    file.write_bytes(content)
    with pytest.raises(ModelFailure, match=problem) as caught:
        read_head(file)
    assert str(file) in str(caught.value)


def test_a_missing_file_and_a_directory_are_named(tmp_path):
    with pytest.raises(ModelFailure, match=r"there is no file .*none\.gguf"):
        read_head(tmp_path / "none.gguf")
    with pytest.raises(ModelFailure, match="cannot be read"):
        read_head(tmp_path)


def test_a_model_that_does_not_fit_is_refused_with_both_sizes(file):
    head = GgufHead(4_000_000_000, "llama", 4096, 32, 2048)
    check_memory(file, head, 4096, 6_000_000_000)
    with pytest.raises(ModelFailure, match=r"model.gguf needs about 4\.\d GB of memory and 4\.0 GB are free"):
        check_memory(file, head, 4096, 4_000_000_000)


def test_the_memory_of_this_machine_is_known():
    assert 0 < available_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
