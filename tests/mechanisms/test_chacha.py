"""The compiled ChaCha20 is that of RFC 8439, block for block."""

import numpy as np
import pytest
from chacha import MASK, plain_block

from skdp.mechanisms._chacha import GROUP, LANES, fill_words, first_block


def compiled_blocks(key, counter, nonce, count=LANES):
    """Return consecutive blocks, each as its 64 bytes."""
    state = first_block(key, int.from_bytes(nonce, "little"))
    state[12] = counter
    words = np.empty(8 * count, dtype=np.uint64)
    fill_words(state, words)
    assert state[12] == (counter + count) & MASK
    blocks = words.view(np.uint32).reshape(-1, 16, LANES).swapaxes(1, 2).reshape(-1, 16)
    return [block.astype("<u4").tobytes() for block in blocks]


@pytest.mark.parametrize(
    ("key", "counter", "nonce", "expected"),
    [
        (
            bytes(range(32)),
            1,
            "000000090000004a00000000",
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
            "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
        ),
        (
            bytes(32),
            0,
            "000000000000000000000000",
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
        ),
        (
            bytes(32),
            1,
            "000000000000000000000000",
            "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
            "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
        ),
    ],
    ids=["2.3.2", "A.1.1", "A.1.2"],
)
def test_vectors_of_the_rfc(key, counter, nonce, expected):
    nonce = bytes.fromhex(nonce)
    assert plain_block(key, counter, nonce).hex() == expected
    assert compiled_blocks(key, counter, nonce)[0].hex() == expected


@pytest.mark.parametrize("counter", [0, 5, 2**31 - 3, 2**32 - 20])
def test_every_block_is_that_of_a_plain_implementation(counter):
    rng = np.random.default_rng(counter)
    key, nonce = rng.bytes(32), rng.bytes(12)
    found = compiled_blocks(key, counter, nonce, 3 * LANES)
    assert found == [plain_block(key, (counter + i) & MASK, nonce) for i in range(3 * LANES)]


def test_words_go_on_where_they_ended():
    once, twice = np.empty(4 * GROUP, np.uint64), np.empty(4 * GROUP, np.uint64)
    fill_words(first_block(bytes(32), 7), once)
    state = first_block(bytes(32), 7)
    for piece in (twice[:GROUP], twice[GROUP:]):
        fill_words(state, piece)
    assert np.array_equal(once, twice)
