"""ChaCha20 as section 2.3 of RFC 8439 has it, on integers of Python."""

MASK = 2**32 - 1


def quarter_round(x, i, j, k, m):
    for p, q, r, places in ((i, j, m, 16), (k, m, j, 12), (i, j, m, 8), (k, m, j, 7)):
        x[p] = (x[p] + x[q]) & MASK
        x[r] ^= x[p]
        x[r] = (x[r] << places | x[r] >> (32 - places)) & MASK


def plain_block(key, counter, nonce):
    """Return the 64 bytes of a block."""
    text = b"expand 32-byte k" + key + counter.to_bytes(4, "little") + nonce
    start = [int.from_bytes(text[i : i + 4], "little") for i in range(0, 64, 4)]
    x = list(start)
    for _ in range(10):
        for i in range(4):
            quarter_round(x, i, i + 4, i + 8, i + 12)
        for i in range(4):
            quarter_round(x, i, (i + 1) % 4 + 4, (i + 2) % 4 + 8, (i + 3) % 4 + 12)
    return b"".join(((a + b) & MASK).to_bytes(4, "little") for a, b in zip(x, start, strict=True))
