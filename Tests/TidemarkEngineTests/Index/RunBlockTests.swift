import Testing

@testable import TidemarkEngine

@Suite("Blocks of a sorted run")
struct RunBlockTests {
  /// An encoded block with the keys `a`, of the least sequence, and `ab`, three sequences later.
  private func block(
    least: UInt64 = 7, sequenceBits: Int = 2, labelSetBits: Int = 1, columns: [UInt8] = [12, 2]
  ) -> [UInt8] {
    var writer = ByteWriter()
    writer.u64(least | UInt64(sequenceBits) << 48 | UInt64(labelSetBits) << 56)
    writer.raw(columns + [40, 41, 1, 0x61, 1, 1, 0x62])
    return writer.bytes
  }

  private func slots(_ bytes: [UInt8]) throws(FormatError) -> [Slot] {
    let block = try RunBlock(bytes.rawSpan, count: 2)
    return [try block.slot(0), try block.slot(1)]
  }

  @Test("a block of two keys decodes to their sequences, label sets, size classes and order")
  func packed() throws {
    let bytes = block()
    #expect(
      try slots(bytes) == [
        Slot(sequence: 7, labelSet: 0, size: SizeClass(rawValue: 40)),
        Slot(sequence: 10, labelSet: 1, size: SizeClass(rawValue: 41)),
      ])
    let coded = try RunBlock(bytes.rawSpan, count: 2)
    #expect(try coded.position(of: [0x61, 0x62].rawSpan) == 1)
    #expect(try coded.position(of: [0x62].rawSpan) == nil)
  }

  @Test("an index block whose columns are too wide or exceed its length is refused")
  func hostile() {
    let wrong = [
      block(sequenceBits: 49), block(sequenceBits: 255), block(labelSetBits: 33),
      block(labelSetBits: 255), block(sequenceBits: 48, labelSetBits: 32, columns: []),
      [1, 2, 3], [],
    ]
    for bytes in wrong { #expect(throws: FormatError.self) { try slots(bytes) } }
  }

  @Test("an index block whose sequence exceeds 48 bits is refused as malformed")
  func overflow() {
    #expect(throws: FormatError.self) { try slots(block(least: Slot.maxSequence - 2)) }
    #expect((try? slots(block(least: Slot.maxSequence - 3)))?[1].sequence == Slot.maxSequence)
  }
}
