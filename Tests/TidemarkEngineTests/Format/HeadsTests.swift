import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Heads in columns")
struct HeadsTests {
  private static let codecs = FrameCodecs(contexts: ZstdContexts())

  /// What a random entry was built from.
  private struct Expected {
    var entry: FrameBuilder.Entry
    var key: [UInt8]
    var value: [UInt8]?
    var attributes: [UInt8]
    var labels: [[UInt8]]
  }

  private static func expected(
    _ random: inout SeededGenerator, sequence: UInt64, wide: Bool
  ) -> Expected {
    let kinds: [EntryKind] = [.put, .put, .put, .delete, .touch, .record, .evict]
    let kind = kinds[Int(random.next() % 7)]
    var entry = FrameBuilder.Entry(
      kind: kind, endsBatch: random.next() % 3 == 0, sequence: sequence,
      commitTime: wide ? random.next() : 1 << 56 + random.next() % 1000)
    if kind != .record, random.next() % 2 == 0 {
      entry.previous = 1 + random.next() % (sequence - 1)
    }
    if kind == .touch { entry.valueSequence = 1 + random.next() % (sequence - 1) }
    // Also later than the entry itself, which a clock that was set back can bring.
    if random.next() % 3 == 0 {
      entry.created = wide ? random.next() : 1 << 56 + random.next() % 99
    }
    var key = [UInt8]("shared by all/".utf8.prefix(Int(random.next() % 15)))
    key += (0..<(1 + random.next() % 5)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    if kind == .record, random.next() % 2 == 0 { key = [] }
    let length = random.next() % 4 == 0 ? 0 : Int(random.next() % 300)
    let hasValue = kind == .put || kind == .record && random.next() % 2 == 0
    let set = kind == .put ? random.next() % 4 : 0
    entry.labelSetID = UInt32(set)
    return Expected(
      entry: entry, key: key, value: hasValue ? [UInt8](repeating: 7, count: length) : nil,
      attributes: [UInt8](repeating: 9, count: random.next() % 3 == 0 ? 40 : 0),
      labels: (0..<set).map { Array("label \($0)".utf8) })
  }

  private static func same(_ front: DecodedFront, _ head: EntryHead, _ expected: Expected) -> Bool {
    let entry = expected.entry
    return head.kind == entry.kind && head.endsBatch == entry.endsBatch
      && head.sequence == entry.sequence && head.commitTime == entry.commitTime
      && head.previous == entry.previous && head.valueSequence == entry.valueSequence
      && head.created == entry.created && head.hasValue == (expected.value != nil)
      && head.valueLength == expected.value?.count ?? 0
      && [UInt8](copying: front.key(of: head)) == expected.key
      && [UInt8](copying: front.attributeBytes(of: head)) == expected.attributes
      && front.labels(of: head) == expected.labels
  }

  @Test(
    "random entries come back, all together and some of them alone",
    arguments: [false, true], [nil, FrameCodecs.compactionLevel])
  func roundTrip(isCompacted: Bool, level: Int32?) throws {
    for seed in 1...60 as ClosedRange<UInt64> {
      var random = SeededGenerator(seed: seed)
      var builder = FrameBuilder(hasExplicitSequences: isCompacted)
      let first = 1000 + random.next() % 1_000_000
      var all: [Expected] = []
      for number in 0..<(1 + random.next() % 200) {
        let sequence = isCompacted ? 1000 + random.next() % 1_000_000 : first + number
        all.append(Self.expected(&random, sequence: sequence, wide: seed % 2 == 0))
        let last = all[all.count - 1]
        let value = last.value ?? []
        builder.add(
          last.entry, key: last.key.rawSpan, value: value.rawSpan,
          attributes: last.attributes.rawSpan, hasValue: last.value != nil, labels: last.labels)
      }
      var output: [UInt8] = []
      let header = try builder.finish(
        appendingTo: &output, offset: 0, salt: 3, durableThrough: 0, level: level,
        codecs: Self.codecs
      ).header
      let stored = Array(output[64..<(64 + header.frontLength)])
      let front = try DecodedFront(stored.rawSpan, header: header, offset: 0, codecs: Self.codecs)
      #expect(front.entries.count == all.count, "seed \(seed)")
      for (head, expected) in zip(front.entries, all) {
        #expect(Self.same(front, head, expected), "seed \(seed), sequence \(head.sequence)")
      }
      let wanted = all.indices.filter { _ in random.next() % 5 == 0 }
      let some = try DecodedFront(
        stored.rawSpan, header: header, offset: 0, codecs: Self.codecs, only: wanted)
      #expect(some.entries.count == wanted.count)
      for (head, index) in zip(some.entries, wanted) {
        #expect(Self.same(some, head, all[index]), "seed \(seed), entry \(index) alone")
        #expect(head.valueOffset == front.entries[index].valueOffset)
      }
    }
  }

  /// Heads of two puts without values' lengths but 0, whose bytes a test changes.
  private static func heads(
    columns: [UInt8], keys: [UInt8] = [1, 0x61, 1, 1, 0x62]
  ) -> [UInt8] {
    var heads = ByteWriter()
    let present: HeadColumns = [.valueLengths, .commitTimes]
    heads.u16(present.rawValue)
    heads.varint(keys.count << 2)
    heads.raw(columns)
    heads.raw(keys)
    return heads.bytes
  }

  private static func decode(
    _ heads: [UInt8], raw: Int = 3, only: [Int]? = nil
  ) throws(FormatError) -> Int {
    let header = FrameHeader(
      storedLength: heads.count, headsRawLength: raw, firstSequence: 1, durableThrough: 0,
      entryCount: 2, blockCount: 0, headsChecksum: 0, hasExplicitSequences: false,
      usesDictionary: false, frontLength: heads.count)
    let decoder = try HeadsDecoder(heads.rawSpan, header: header, codecs: codecs)
    if let only { return try decoder.some(only).entries.count }
    return try decoder.all().entries.count
  }

  @Test("a column that lacks a commit time, or ends beyond the heads, is refused")
  func hostileColumns() throws {
    #expect(try Self.decode(Self.heads(columns: [0, 0, 0, 5])) == 2)
    let bad: [[UInt8]] = [
      // A commit time that one entry lacks, numbers of 57 and 65 bits, a bitmap of three entries.
      [0, 0, 0x80, 5, 1], [57, 0, 0, 5], [65, 0, 0, 5], [0x80, 0, 7, 0, 5],
      // Numbers that are not there; an entry without a value that is a put.
      [0, 0, 56, 5], [0x80, 0, 1, 0, 5],
    ]
    for columns in bad {
      #expect(throws: FormatError.self, "\(columns)") {
        try Self.decode(Self.heads(columns: columns))
      }
    }
  }

  @Test("an end of a batch that is neither 0 nor 1, and attributes of no bytes, are refused")
  func outOfRange() throws {
    for (column, number) in [(HeadColumns.ends, 2), (.attributeLengths, 0)] {
      var heads = ByteWriter()
      let present: HeadColumns = [.valueLengths, .commitTimes, column]
      heads.u16(present.rawValue)
      heads.varint(5 << 2)
      if column == .attributeLengths { heads.varint(0) }
      let numbers = [(HeadColumns.valueLengths, 0), (.commitTimes, 5), (column, number)]
      for (_, number) in numbers.sorted(by: { $0.0.rawValue < $1.0.rawValue }) {
        heads.u8(0)
        heads.varint(number)
      }
      heads.raw([1, 0x61, 1, 1, 0x62])
      #expect(throws: FormatError.self) { try Self.decode(heads.bytes) }
    }
  }

  @Test("keys that expand beyond the length in the frame header are refused")
  func keyBomb() throws {
    let key = [UInt8](repeating: 1, count: 200)
    // The second key is the first one again.
    let heads = Self.heads(columns: [0, 0, 0, 5], keys: [200, 1] + key + [200, 1, 0])
    #expect(try Self.decode(heads, raw: 400) == 2)
    #expect(throws: FormatError.self) { try Self.decode(heads, raw: 399) }
    #expect(throws: FormatError.self) { try Self.decode(heads, raw: 399, only: [0, 1]) }
    #expect(throws: FormatError.self) { try Self.decode(heads, raw: 400, only: [2]) }
  }
}

extension FrameBuilder {
  fileprivate mutating func add(
    _ entry: Entry, key: RawSpan, value: RawSpan, attributes: RawSpan, hasValue: Bool,
    labels: [[UInt8]]
  ) {
    if hasValue {
      add(entry, key: key, value: value, attributes: attributes) { _ in labels }
    } else {
      add(entry, key: key, value: nil, attributes: attributes) { _ in labels }
    }
  }
}
