"""The sizes inside an AVIF file, read before a decoder sees it.

An AVIF file tells its size many times: in the container, where Pillow reports one of the answers,
and in the AV1 streams, which is what the decoder makes room for. A file of a kilobyte can promise
100 x 100 pixels in the first and hold 16384 x 16384 in the second: half a gigabyte. So every stream
is looked at. libavif then scales each picture to what the container says of it, and makes room for
what a grid of tiles says of itself: 192 MB from 671 bytes. So all of these are looked at, too.

The container itself is a trap, too, for libavif reads all of it when Pillow opens the file, and
holds Python's interpreter meanwhile: it looks for each item among all others, seven seconds for
60,000 of them in 300 KB, and makes room for as many frames as eleven kilobytes can promise, 260 MB.

Source: ISO/IEC 14496-12 (boxes), ISO/IEC 23008-12 (items), AV1 specification §5.3 to §5.5.
"""

from collections.abc import Iterator
from dataclasses import dataclass

SEQUENCE_HEADER = 1
IMAGE, GRID = b"av01", b"grid"  # kinds of items
PARENTS = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl", b"meta", b"iprp", b"ipco"})
# What names items, and how a track is coded. Of all of it together an honest file has a kilobyte;
# libavif makes a kilobyte of each eight bytes of `stsd`.
LISTS = frozenset({b"iinf", b"iloc", b"iref", b"ipma", b"stsd"})
MOST_LIST_BYTES = 32 * 1024
# What is read here, and what libavif takes from the first of its kind if there are two.
UNIQUE = LISTS - {b"ipma", b"stsd"} | {b"idat", b"stsz", b"stsc", b"stco", b"co64"}
DEEPEST_BOX = 8
# An honest file has some dozens of boxes and units; a hostile one could have millions.
MOST_STEPS = 20_000
MOST_FRAMES = 20_000
# What the items may have together, beside twice the file's size: encoders store what is the same
# only once, as the tiles of one colour, or the metadata of a sequence and of its track.
MOST_ITEM_BYTES = 256 * 1024
LONGEST_SEQUENCE_HEADER = 256

Boxes = list[tuple[bytes, memoryview]]


class Unreadable(Exception):
    """The file is not built as its format wants it."""


class Steps:
    """How much of the file may still be looked at."""

    def __init__(self, most_bytes: int) -> None:
        self._steps = MOST_STEPS
        self._bytes = most_bytes
        self._list_bytes = MOST_LIST_BYTES

    def take(self, size: int = 0) -> None:
        """Count a step, and what it copies. Raises: Unreadable when it was one too many."""
        self._steps -= 1
        self._bytes -= size
        if self._steps < 0 or self._bytes < 0:
            raise Unreadable

    def take_list(self, size: int) -> None:
        """Count a box that should be short. Raises: Unreadable when they are too long together."""
        self._list_bytes -= size
        if self._list_bytes < 0:
            raise Unreadable


@dataclass
class Reader:
    """Big-endian numbers from a piece of the file; reading past its end is Unreadable."""

    data: memoryview
    at: int = 0

    def number(self, size: int) -> int:
        """Return the number in the next `size` bytes; 0 for none."""
        return int.from_bytes(self.take(size), "big")

    def take(self, size: int) -> memoryview:
        """Return the next `size` bytes."""
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise Unreadable
        self.at += size
        return piece

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self.data) - self.at


class Bits:
    """Numbers of any count of bits, the highest first."""

    def __init__(self, data: memoryview) -> None:
        self._value = int.from_bytes(data, "big")
        self._left = 8 * len(data)

    def number(self, count: int) -> int:
        """Return the number in the next `count` bits."""
        self._left -= count
        if self._left < 0:
            raise Unreadable
        return (self._value >> self._left) & ((1 << count) - 1)

    def variable(self) -> int:
        """Return a number whose length is told by the zeros before it (AV1 §4.10.3)."""
        zeros = 0
        while not self.number(1):
            zeros += 1
        return self.number(zeros) + (1 << zeros) - 1 if zeros < 32 else (1 << 32) - 1


def largest_side(content: memoryview) -> int:
    """Return the longest side of all that the container tells and the AV1 streams can have.

    Raises: Unreadable, also when there is no stream at all, or more in the container than an honest
    file has.
    """
    steps = Steps(MOST_ITEM_BYTES + 2 * len(content))
    boxes = list(_boxes_within(content, steps))
    _require_short_lists(boxes, steps)
    items, tracks = list(_items(content, boxes, steps)), _first_samples(content, boxes, steps)
    streams = [*(data for kind, data in items if kind == IMAGE), *tracks]
    sides = [side for stream in streams for side in _sides(stream, steps)]
    if not sides:
        raise Unreadable
    told = [side for kind, body in boxes if kind in TOLD for side in TOLD[kind](body)]
    grids = [side for kind, data in items if kind == GRID for side in _grid_sides(data)]
    return max(sides + told + grids)


# --- containers --------------------------------------------------------------------------------


def _boxes_within(
    data: memoryview, steps: Steps, depth: int = 0
) -> Iterator[tuple[bytes, memoryview]]:
    """Yield every box, and those in it, however deep."""
    for kind, body in _boxes(data, steps):
        yield kind, body
        if kind in PARENTS and depth < DEEPEST_BOX:
            yield from _boxes_within(body[4:] if kind == b"meta" else body, steps, depth + 1)


def _require_short_lists(boxes: Boxes, steps: Steps) -> None:
    for kind, body in boxes:
        if kind in LISTS:
            steps.take_list(len(body))


def _by_kind(data: memoryview, steps: Steps) -> dict[bytes, memoryview]:
    found: dict[bytes, memoryview] = {}
    for kind, body in _boxes(data, steps):
        if kind in UNIQUE and kind in found:
            raise Unreadable
        found[kind] = body
    return found


def _boxes(data: memoryview, steps: Steps) -> Iterator[tuple[bytes, memoryview]]:
    reader = Reader(data)
    while reader.left >= 8:
        steps.take()
        start, size, kind = reader.at, reader.number(4), bytes(reader.take(4))
        if size == 1:
            size = reader.number(8)
        elif size == 0:  # up to the end
            size = len(data) - start
        header = reader.at - start
        if size < header:
            raise Unreadable
        yield kind, reader.take(size - header)


def _items(content: memoryview, boxes: Boxes, steps: Steps) -> Iterator[tuple[bytes, memoryview]]:
    """Yield kind and data of every AV1 image and every grid, also of those of a track."""
    for kind, body in boxes:
        if kind == b"meta":
            yield from _items_of(content, _by_kind(body[4:], steps), steps)


def _items_of(
    content: memoryview, meta: dict[bytes, memoryview], steps: Steps
) -> Iterator[tuple[bytes, memoryview]]:
    if b"iloc" not in meta or b"iinf" not in meta:
        return
    kinds = set(_kinds(meta[b"iinf"], steps))
    for item_id, extents in _locations(content, meta[b"iloc"], meta.get(b"idat"), steps):
        steps.take(sum(map(len, extents)))  # libavif copies metadata, too
        for kind in (IMAGE, GRID):
            if (item_id, kind) in kinds:
                yield kind, memoryview(b"".join(extents))


def _kinds(iinf: memoryview, steps: Steps) -> Iterator[tuple[int, bytes]]:
    """Yield id and kind of the items that are AV1 images or grids of them."""
    version = iinf[0] if len(iinf) else 0
    for kind, entry in _boxes(iinf[6 if version == 0 else 8 :], steps):
        if kind != b"infe":
            continue
        reader = Reader(entry)
        version = reader.number(4) >> 24
        item_id = reader.number(4 if version == 3 else 2)
        reader.number(2)  # protection
        if version >= 2 and (item_kind := bytes(reader.take(4))) in {IMAGE, GRID}:
            yield item_id, item_kind


def _locations(
    content: memoryview, iloc: memoryview, idat: memoryview | None, steps: Steps
) -> Iterator[tuple[int, list[memoryview]]]:
    """Yield each item's id and the pieces of the file that make it up."""
    reader = Reader(iloc)
    version = reader.number(4) >> 24
    sizes = reader.number(2)
    offset_size, length_size, base_size = sizes >> 12, (sizes >> 8) & 15, (sizes >> 4) & 15
    index_size = sizes & 15 if version else 0
    for _ in range(reader.number(4 if version == 2 else 2)):
        steps.take()
        item_id = reader.number(4 if version == 2 else 2)
        method = reader.number(2) & 15 if version else 0
        reader.number(2)  # data reference
        base = reader.number(base_size)
        source = content if method == 0 else idat if method == 1 else None
        extents = []
        for _ in range(reader.number(2)):
            steps.take()
            reader.number(index_size)
            offset, length = base + reader.number(offset_size), reader.number(length_size)
            if source is None:
                raise Unreadable
            extents.append(Reader(source, offset).take(length or max(0, len(source) - offset)))
        yield item_id, extents


def _grid_sides(grid: memoryview) -> tuple[int, int]:
    """Return the sides of the picture that a grid's tiles make up (ISO/IEC 23008-12 §6.6.2.3)."""
    reader = Reader(grid, 1)
    is_long = reader.number(1) & 1
    reader.number(2)  # rows and columns
    return _two_numbers(reader, 4 if is_long else 2)


def _picture_sides(ispe: memoryview) -> tuple[int, int]:
    """Return the sides of an item's picture (ISO/IEC 23008-12 §6.5.3.2)."""
    return _two_numbers(Reader(ispe, 4))


def _track_sides(tkhd: memoryview) -> tuple[int, int]:
    """Return the sides of a track's picture (ISO/IEC 14496-12 §8.3.2)."""
    reader = Reader(tkhd)
    is_long = reader.number(4) >> 24 == 1
    reader.take(32 if is_long else 20)  # times, id, duration
    reader.take(52)  # up to the matrix
    width, height = _two_numbers(reader)
    return width >> 16, height >> 16  # the rest is a fraction


def _two_numbers(reader: Reader, size: int = 4) -> tuple[int, int]:
    return reader.number(size), reader.number(size)


def _first_samples(content: memoryview, boxes: Boxes, steps: Steps) -> Iterator[memoryview]:
    for kind, body in boxes:
        if kind == b"stbl":
            yield _first_sample(content, _by_kind(body, steps), steps)


def _first_sample(content: memoryview, table: dict[bytes, memoryview], steps: Steps) -> memoryview:
    sizes = Reader(table.get(b"stsz", memoryview(b"")), 4)
    size = sizes.number(4)
    if sizes.number(4) and size == 0:
        size = sizes.number(4)
    is_wide = b"co64" in table
    if is_wide and b"stco" in table:
        raise Unreadable
    offsets = Reader(table.get(b"co64" if is_wide else b"stco", memoryview(b"")), 4)
    chunks = offsets.number(4)
    if not 0 < chunks * _longest_chunk(table, steps) <= MOST_FRAMES:
        raise Unreadable
    return Reader(content, offsets.number(8 if is_wide else 4)).take(size)


def _longest_chunk(table: dict[bytes, memoryview], steps: Steps) -> int:
    """Return how many frames the chunks of a track have at most."""
    reader, longest = Reader(table.get(b"stsc", memoryview(b"")), 4), 0
    for _ in range(reader.number(4)):
        steps.take()
        reader.number(4)  # the first chunk of this length
        longest = max(longest, reader.number(4))
        reader.number(4)  # sample description
    return longest


TOLD = {b"ispe": _picture_sides, b"tkhd": _track_sides}


# --- streams -----------------------------------------------------------------------------------


def _sides(stream: memoryview, steps: Steps) -> Iterator[int]:
    """Yield the sides that the sequence headers of a stream allow (AV1 §5.3, §5.5)."""
    reader = Reader(stream)
    while reader.left:
        steps.take()
        header = reader.number(1)
        if header & 4:
            reader.number(1)  # extension
        size = _leb128(reader) if header & 2 else reader.left
        body = reader.take(size)
        if (header >> 3) & 15 == SEQUENCE_HEADER:
            yield from _sequence_sides(Bits(body[:LONGEST_SEQUENCE_HEADER]))


def _leb128(reader: Reader) -> int:
    value = 0
    for position in range(8):
        byte = reader.number(1)
        value |= (byte & 127) << (7 * position)
        if not byte & 128:
            return value
    raise Unreadable


def _sequence_sides(bits: Bits) -> Iterator[int]:
    bits.number(4)  # seq_profile, still_picture
    is_reduced = bits.number(1)
    if is_reduced:
        bits.number(5)
    else:
        _skip_operating_points(bits)
    widths = bits.number(4) + 1, bits.number(4) + 1
    for width in widths:
        yield bits.number(width) + 1
        # A frame of its own size may use all of these bits, whatever the sequence promised.
        if not is_reduced:
            yield 1 << width


def _skip_operating_points(bits: Bits) -> None:
    delay_length = 0
    if bits.number(1):  # timing_info_present_flag
        bits.number(64)
        if bits.number(1):
            bits.variable()
        if bits.number(1):  # decoder_model_info_present_flag
            delay_length = bits.number(5) + 1
            bits.number(32 + 5 + 5)
    has_initial_delay = bits.number(1)
    for _ in range(bits.number(5) + 1):
        bits.number(12)
        if bits.number(5) > 7:
            bits.number(1)
        if delay_length and bits.number(1):
            bits.number(2 * delay_length + 1)
        if has_initial_delay and bits.number(1):
            bits.number(4)
