import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// A compacted segment in memory, written and opened for reading.
private struct WrittenSegment {
  struct Item {
    var key: [UInt8]
    var sequence: UInt64
    var value: [UInt8]?
    var labels: [[UInt8]] = []
    var isSuperseded = false
  }

  let fileSystem = MemoryFileSystem()
  let contexts = ZstdContexts()
  let row: Manifest.Segment
  let segment: Segment

  init(_ items: [Item], layout: SegmentLayout, usesThread: Bool = false) throws {
    try fileSystem.createDirectory("s")
    try fileSystem.createDirectory("s/log")
    let storeID = [UInt8](repeating: 7, count: 16)
    let row = Manifest.Segment(
      id: 3, state: .sealed, kind: .compacted, salt: 0x1234_5678, firstSequence: 10)
    var writer = try CompactedSegmentWriter(
      creating: row, storeID: storeID, storePath: "s", fileSystem: fileSystem,
      contexts: contexts, layout: layout, usesThread: usesThread)
    for item in items {
      var entry = FrameBuilder.Entry(
        kind: item.value == nil ? .delete : .put, endsBatch: true, sequence: item.sequence,
        commitTime: 1000 + item.sequence)
      entry.previous = item.sequence - 1
      let none: [UInt8] = []
      if let value = item.value {
        try writer.add(
          entry, key: item.key.rawSpan, value: value.rawSpan, attributes: none.rawSpan,
          labels: item.labels, isSuperseded: item.isSuperseded)
      } else {
        try writer.add(
          entry, key: item.key.rawSpan, value: nil, attributes: none.rawSpan, labels: item.labels,
          isSuperseded: item.isSuperseded)
      }
    }
    self.row = try writer.finish(
      lastSequence: 100_000, latestTime: Timestamp(seconds: 5), latestCommitTime: 200_000)
    segment = Segment(
      self.row, storeID: storeID, storePath: "s", fileSystem: fileSystem, contexts: contexts,
      keys: KeyRing())
  }

  func bytes() throws -> [UInt8] {
    let file = try fileSystem.open("s/log/" + row.fileName, .read)
    defer { file.close() }
    return try file.read(try file.length(), at: 0)
  }

  func value(_ sequence: UInt64, caches: LogCaches) throws -> [UInt8]? {
    guard let location = try segment.locate(sequence) else { return nil }
    var value: [UInt8] = []
    try segment.readValue(at: location, sequence: sequence, caches: caches) {
      value = [UInt8](copying: $0)
    }
    return value
  }
}

/// Three hundred keys, several versions each, sorted, with values from empty to three blocks.
private func items(withHistory: Bool = false) -> [WrittenSegment.Item] {
  var items: [WrittenSegment.Item] = []
  for number in 0..<300 {
    let key = Array("key-\(1000 + number)".utf8)
    for version in 0..<3 {
      // Sequences run across the keys, so that key order and sequence order differ.
      let sequence = UInt64(10 + version * 1000 + (number * 7) % 300 * 3)
      let length = [0, 10, 250, 3000, 16 << 10, 40_000][(number + version) % 6]
      let text = Array("{\"name\":\"value of \(number)\",\"version\":\(version)}".utf8)
      var value: [UInt8] = []
      while value.count < length { value.append(contentsOf: text) }
      value.removeLast(value.count - length)
      items.append(
        WrittenSegment.Item(
          key: key, sequence: sequence, value: number % 11 == 3 ? nil : value,
          labels: number % 3 == 0 ? [] : [Array("l\(number % 3)".utf8), Array("x".utf8)],
          isSuperseded: withHistory && version < 2))
    }
  }
  return items
}

private let layouts = [
  SegmentLayout(level: nil), SegmentLayout(), SegmentLayout(blockTarget: 1024),
  SegmentLayout(
    blockTarget: 1,
    dictionary: Array(
      String(repeating: "{\"name\":\"value of 1\",\"version\":1}", count: 40).utf8)),
]

@Test(
  "a compacted segment gives back every entry by its sequence", arguments: layouts.indices,
  [false, true])
func compactedSegmentReadsBack(layout: Int, withHistory: Bool) throws {
  let items = items(withHistory: withHistory)
  let written = try WrittenSegment(items, layout: layouts[layout])
  let caches = LogCaches(blockBytes: 1 << 20, frontBytes: 1 << 20)
  #expect(written.row.entryCount == items.count)
  #expect(written.row.lastSequence == 100_000)
  for item in items {
    let found = try written.segment.head(of: item.sequence, caches: caches)
    let entry = try #require(found)
    #expect(entry.key == item.key)
    #expect(entry.labels == item.labels)
    #expect(entry.head.commitTime == 1000 + item.sequence)
    #expect(entry.head.previous == item.sequence - 1)
    #expect(entry.head.kind == (item.value == nil ? .delete : .put))
    #expect(try written.value(item.sequence, caches: caches) == item.value ?? [])
  }
  #expect(try written.segment.head(of: 11, caches: caches) == nil)
  #expect(try written.segment.locate(99_999) == nil)
}

@Test("a sequence is found however unevenly they lie", arguments: 0..<6)
func unevenSequences(seed: UInt64) throws {
  var chance = SeededGenerator(seed: seed)
  var sequences: Set<UInt64> = [10, 100_000]
  // Runs of neighbours with gaps of all sizes between them.
  while sequences.count < 3_000 {
    let first = 10 + chance.next() % (1 << (4 + chance.next() % 13))
    for sequence in first..<(first + chance.next() % 50) where sequence < 100_000 {
      sequences.insert(sequence)
    }
  }
  let sorted = sequences.sorted()
  let items = sorted.enumerated().map { number, sequence in
    WrittenSegment.Item(key: Array("k\(number)".utf8), sequence: sequence, value: [1, 2, 3])
  }
  let segment = try WrittenSegment(items, layout: SegmentLayout()).segment
  for sequence in 10...100_000 where sequence < 70_000 || sequence > 99_000 {
    let sequence = UInt64(sequence)
    let isThere = try segment.locate(sequence) != nil
    #expect(isThere == sequences.contains(sequence), "seed \(seed), sequence \(sequence)")
  }
}

@Test("the walk over a compacted segment ends at its locator with the footer's chain")
func compactedSegmentWalks() throws {
  let written = try WrittenSegment(items(), layout: layouts[3])
  let file = try written.segment.file()
  let footer = try SegmentReader.footer(
    file, length: written.row.length, salt: written.row.salt)
  let header = try SegmentReader.header(file)
  var walker = FrameWalker(
    try WindowReader(file), salt: written.row.salt, codecs: try written.segment.codecs(),
    from: header.firstFrame, end: footer.locatorOffset)
  var count = 0
  while !walker.isAtEnd {
    guard case .frame(let front) = try walker.next() else {
      Issue.record("no frame at \(walker.offset)")
      return
    }
    #expect(try walker.checkBody(front) == nil)
    count += front.entries.count
  }
  #expect(count == written.row.entryCount)
  #expect(walker.chain == footer.chain && footer.chain == written.row.chain)
  #expect(footer.latestTime == Timestamp(seconds: 5))
}

@Test("a segment is the same byte for byte whether one thread compresses its frames or two do")
func compactedSegmentThreads() throws {
  var items = items(withHistory: true)
  // Also more than what waits for the second thread at a time.
  for number in 0..<300 {
    let value = (0..<20_000).map { UInt8(truncatingIfNeeded: ($0 * $0) >> 7 ^ number) }
    items.append(
      WrittenSegment.Item(
        key: bytes("z\(1_000 + number)"), sequence: UInt64(50_000 + number), value: value))
  }
  for layout in layouts {
    let one = try WrittenSegment(items, layout: layout)
    let two = try WrittenSegment(items, layout: layout, usesThread: true)
    let file = try one.bytes()
    #expect(try file.count > 100_000 && file == two.bytes())
    #expect(one.row == two.row)
  }
}

@Test("a discarded segment leaves no file")
func compactedSegmentDiscards() throws {
  let fileSystem = MemoryFileSystem()
  try fileSystem.createDirectory("s")
  try fileSystem.createDirectory("s/log")
  let row = Manifest.Segment(
    id: 1, state: .sealed, kind: .compacted, salt: 1, firstSequence: 1)
  var writer = try CompactedSegmentWriter(
    creating: row, storeID: [UInt8](repeating: 0, count: 16), storePath: "s",
    fileSystem: fileSystem, contexts: ZstdContexts(), layout: SegmentLayout())
  writer.discard()
  #expect(try fileSystem.list("s/log").isEmpty)
}

@Test("history stands in frames of its own, sorted like the others, and takes much less space")
func compactedSegmentHistory() throws {
  let caches = LogCaches(blockBytes: 1 << 20, frontBytes: 1 << 20)
  let mixed = try WrittenSegment(items(), layout: layouts[2])
  let written = try WrittenSegment(items(withHistory: true), layout: layouts[2])
  #expect(written.row.length < mixed.row.length * 3 / 4)
  for isHistory in [false, true] {
    var last: (key: [UInt8], sequence: UInt64) = ([], 0)
    var count = 0
    for record in try written.segment.frames(ofHistory: isHistory) {
      let front = try written.segment.front(record, caches: caches)
      #expect(front.header.isHistory == isHistory)
      for head in front.entries {
        let key = [UInt8](copying: front.key(of: head))
        #expect(last.key.lexicographicallyPrecedes(key) || last.sequence < head.sequence)
        last = (key, head.sequence)
        count += 1
      }
    }
    #expect(count == (isHistory ? 600 : 300))
  }
  #expect(try written.segment.frames().map(\.isHistory).first == true)
}

@Test("an entry newer than one of its key that is no history is none either")
func compactedSegmentKeepsOrder() throws {
  var items: [WrittenSegment.Item] = []
  for version in 0..<4 {
    items.append(
      WrittenSegment.Item(
        key: [1], sequence: UInt64(20 + version), value: [UInt8(version)],
        isSuperseded: version != 1))
  }
  let segment = try WrittenSegment(items, layout: SegmentLayout()).segment
  let caches = LogCaches(blockBytes: 1 << 20, frontBytes: 1 << 20)
  var sequences: [UInt64] = []
  for record in try segment.frames() {
    sequences += try segment.front(record, caches: caches).entries.map(\.sequence)
  }
  #expect(sequences == [20, 21, 22, 23])
}

@Test("the locator of a compacted segment takes at most six bytes a record, ten more a block")
func compactedSegmentLocatorSize() throws {
  let count = 20_000
  // Every other sequence is gone, and keys have nothing to do with the order of the writes.
  let items = (0..<count).map { number in
    WrittenSegment.Item(
      key: Array("key-\(100_000 + number)".utf8),
      sequence: UInt64(10 + 2 * ((number * 7919) % count)),
      value: Array(repeating: UInt8(truncatingIfNeeded: number), count: 200 + number * 37 % 90))
  }
  let written = try WrittenSegment(items, layout: SegmentLayout(blockTarget: 1024))
  let footer = try SegmentReader.footer(
    try written.segment.file(), length: written.row.length, salt: written.row.salt)
  // In the block table a block takes four bytes, and behind it stands its checksum of four.
  let locator = written.row.length - footer.locatorOffset - FormatConstants.segmentFooterBytes
  #expect(locator + footer.blockCount * 8 <= count * 6 + footer.blockCount * 10)
}

@Test("a block that stands in the place of another one is damage")
func compactedSegmentSwappedBlocks() throws {
  let items: [WrittenSegment.Item] = [0, 1].map { (number: UInt8) -> WrittenSegment.Item in
    let value = [UInt8](repeating: 65 + number, count: 1000)
    return WrittenSegment.Item(key: [number], sequence: 20 + UInt64(number), value: value)
  }
  let written = try WrittenSegment(items, layout: SegmentLayout(blockTarget: 1, level: nil))
  let first = try #require(try written.segment.locate(20)).first
  let second = try #require(try written.segment.locate(21)).first
  #expect(first.storedLength == second.storedLength)
  let file = try written.fileSystem.open("s/" + written.segment.fileName, .readWrite)
  let bytes = try file.read(Int(first.storedLength), at: Int(first.offset))
  try file.writeFully(bytes.rawSpan, at: Int(second.offset))
  let caches = LogCaches(blockBytes: 0, frontBytes: 0)
  #expect(try written.value(20, caches: caches) == items[0].value)
  let error = #expect(throws: TidemarkError.self) {
    try written.value(21, caches: caches)
  }
  #expect(error?.code == .damaged)
}
