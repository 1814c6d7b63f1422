import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Bytes whose checksums are right and whose numbers ask for too much.
@Suite("Hostile numbers")
struct HostileNumbersTests {
  private static let seed: UInt64 = 77

  /// A sorted run of keys with labels: "a" on all of them, "b" on every second one.
  private func makeRun(keys: Int, on disk: MemoryFileSystem) throws -> [UInt8] {
    let index = Index(seed: Self.seed)
    for number in 0..<keys {
      let key = bytes("key \(number)")
      let labels = number % 2 == 0 ? [bytes("a"), bytes("b")] : [bytes("a")]
      let slot = Slot(
        sequence: UInt64(number) + 1, labelSet: try index.labelTable.intern(labels),
        size: SizeClass(bytes: 50))
      try index.upsert(key.rawSpan, hash: index.hash(key.rawSpan), slot)
    }
    index.freeze()
    let file = try disk.open("/sorted run", .create)
    try RunWriter.write(
      index.mergeInput(taking: 0), to: file,
      info: RunInfo(storeID: [UInt8](repeating: 1, count: 16), runID: 9, sequence: 100))
    return try file.read(try file.length(), at: 0)
  }

  /// Opens a sorted run of one chunk after its data was changed, with the checksum made right.
  private func reopen(
    _ original: [UInt8], on disk: MemoryFileSystem,
    _ change: (inout [UInt8], RunHeader) throws -> Void
  ) throws -> Index {
    var file = original
    let header = try RunHeader(file.rawSpan.extracting(0..<RunLayout.headerBytes))
    var data = Array(file[RunLayout.headerBytes..<(file.count - 8)])
    try change(&data, header)
    var writer = ByteWriter()
    writer.raw(Array(file[..<RunLayout.headerBytes]))
    writer.raw(data)
    writer.u64(XXH64.hash(data.rawSpan, seed: RunLayout.checksumSeed(runID: 9, chunk: 0)))
    file = writer.bytes
    let opened = try disk.open("/changed", .create)
    try opened.writeFully(file.rawSpan, at: 0)
    return Index(runs: RunList([try SortedRun(file: opened)]), seed: Self.seed)
  }

  private func merge(_ index: Index, on disk: MemoryFileSystem) throws {
    let key = bytes("another")
    try index.upsert(
      key.rawSpan, hash: index.hash(key.rawSpan),
      Slot(sequence: 101, labelSet: 0, size: SizeClass(bytes: 20)))
    index.freeze()
    try RunWriter.write(
      index.mergeInput(taking: 1), to: try disk.open("/merged", .create),
      info: RunInfo(storeID: [UInt8](repeating: 1, count: 16), runID: 10, sequence: 101))
  }

  @Test("posting lists that lie over each other cannot make a merge ask for their sum")
  func overlappingLists() throws {
    let disk = MemoryFileSystem()
    let index = try reopen(try makeRun(keys: 40, on: disk), on: disk) { data, header in
      // All four lists become that of "a".
      let list = header[.labels].offset + 8
      for other in [16, 40, 56] {
        for i in 0..<RunLayout.listBytes { data[list + other + i] = data[list + i] }
      }
    }
    let error = #expect(throws: IndexError.self) { try merge(index, on: disk) }
    guard case .runDamaged = error else {
      Issue.record("another error: \(String(describing: error))")
      return
    }
  }

  @Test("a posting list with more ordinals than bytes is refused")
  func shortList() throws {
    let disk = MemoryFileSystem()
    let index = try reopen(try makeRun(keys: 40, on: disk), on: disk) { data, header in
      let entry = header[.labels].offset
      // Forty ordinals take 8 bytes and 39 differences.
      data[entry + 8 + 12] = 30
    }
    var page = KeyPage()
    #expect(throws: IndexError.self) {
      try index.page(
        matching: LabelQuery(all: [bytes("a")]), from: .start, upTo: .end, limit: 100,
        into: &page)
    }
  }

  @Test("a set that names a label beyond all ids is refused, since bitmaps grow to that id")
  func unknownLabel() throws {
    let disk = MemoryFileSystem()
    let index = try reopen(try makeRun(keys: 40, on: disk), on: disk) { data, header in
      let sets = header[.setBytes]
      for i in 0..<4 { data[sets.offset + i] = 0xf0 }
    }
    var refused = 0
    for number in 0..<2 {
      let key = bytes("key \(number)")
      do {
        try index.upsert(
          key.rawSpan, hash: index.hash(key.rawSpan),
          Slot(sequence: 102, labelSet: 0, size: .deleted))
      } catch { refused += 1 }
    }
    #expect(refused > 0)
  }

  @Test("heads that claim more bytes of values than the blocks hold are refused")
  func claimedValues() throws {
    var builder = FrameBuilder()
    let key = bytes("k")
    let value = bytes("12345")
    builder.add(
      FrameBuilder.Entry(kind: .put, endsBatch: true, sequence: 1, commitTime: 5),
      key: key.rawSpan, value: value.rawSpan, attributes: RawSpan(), labels: { _ in [] })
    var output: [UInt8] = []
    let codecs = FrameCodecs(contexts: ZstdContexts())
    let built = try builder.finish(
      appendingTo: &output, offset: 0, salt: 0, durableThrough: 0, level: nil, codecs: codecs)
    var header = built.header
    var front = Array(output[64..<(64 + header.frontLength)])
    _ = try DecodedFront(front.rawSpan, header: header, offset: 0, codecs: codecs)
    // The row of the block has 2 bytes, the columns' names 2, the length of the keys 1; then comes
    // the column of value lengths: its form, and the only number.
    #expect(front[6] == 5)
    front[6] = 6
    header.headsChecksum = XXH64.hash(front.rawSpan)
    #expect(throws: FormatError.self) {
      try DecodedFront(front.rawSpan, header: header, offset: 0, codecs: codecs)
    }
  }

  @Test("sequences of one segment are found however far apart they are")
  func farSequences() throws {
    let disk = MemoryFileSystem()
    try disk.createDirectory("/s")
    try disk.createDirectory("/s/log")
    let storeID = [UInt8](repeating: 1, count: 16)
    let contexts = ZstdContexts()
    let row = Manifest.Segment(
      id: 1, state: .active, kind: .compacted, salt: 3, firstSequence: 10)
    var writer = try CompactedSegmentWriter(
      creating: row, storeID: storeID, storePath: "/s", fileSystem: disk, contexts: contexts,
      layout: SegmentLayout())
    let sequences: [UInt64] = [10, 11, 10 + 1 << 32, 1 << 47, 1 << 48 - 1]
    for sequence in [9] + sequences {
      let key = bytes("key \(sequence)")
      let entry = FrameBuilder.Entry(
        kind: .put, endsBatch: true, sequence: sequence, commitTime: 5)
      do {
        try writer.add(entry, key: key.rawSpan, value: key.rawSpan, attributes: RawSpan())
        #expect(sequence >= 10)
      } catch { #expect(sequence == 9) }
    }
    let sealed = try writer.finish(
      lastSequence: 1 << 48 - 1, latestTime: nil, latestCommitTime: 5)
    let segment = Segment(
      sealed, storeID: storeID, storePath: "/s", fileSystem: disk, contexts: contexts,
      keys: KeyRing())
    for sequence in sequences {
      #expect(try segment.locate(sequence)?.length == bytes("key \(sequence)").count)
      #expect(try segment.locate(sequence - 2) == nil)
    }
  }

  @Test("raw bytes of segments cannot add up to more than a number holds")
  func rawBytes() throws {
    var manifest = Manifest(
      storeID: [UInt8](repeating: 1, count: 16), replicaID: [UInt8](repeating: 2, count: 16),
      bootID: [UInt8](repeating: 3, count: 16), hashSeed: 4)
    var row = Manifest.Segment(
      id: 1, state: .sealed, kind: .appended, salt: 5, firstSequence: 1)
    row.lastSequence = 10
    row.rawBytes = 1 << 46
    manifest.segments = [row]
    #expect(try Manifest(decoding: manifest.encoded().rawSpan) == manifest)
    manifest.segments[0].rawBytes += 1
    #expect(throws: FormatError.self) { try Manifest(decoding: manifest.encoded().rawSpan) }
  }

  @Test("a walk over a log that covers far more sequences than it holds ends")
  func sparseLog() throws {
    let disk = MemoryFileSystem()
    let path = "/s"
    for folder in ["", "/log", "/index", "/quarantine"] { try disk.createDirectory(path + folder) }
    let storeID = [UInt8](repeating: 1, count: 16)
    let row = Manifest.Segment(
      id: 1, state: .active, kind: .compacted, salt: 3, firstSequence: 1)
    var writer = try CompactedSegmentWriter(
      creating: row, storeID: storeID, storePath: path, fileSystem: disk,
      contexts: ZstdContexts(), layout: SegmentLayout())
    let sequences: [UInt64] = [1, 2, 3_000_000_000, 4_000_000_000]
    for sequence in sequences {
      let entry = FrameBuilder.Entry(
        kind: .put, endsBatch: true, sequence: sequence, commitTime: 5)
      let key = bytes("key \(sequence)")
      try writer.add(
        entry, key: key.rawSpan, value: key.rawSpan, attributes: RawSpan())
    }
    var manifest = Manifest(
      storeID: storeID, replicaID: storeID, bootID: storeID, hashSeed: Self.seed)
    manifest.segments = [
      try writer.finish(lastSequence: 1 << 47, latestTime: nil, latestCommitTime: 5)
    ]
    manifest.nextSegmentID = 2
    manifest.lastSequence = 1 << 47
    manifest.isClosedCleanly = true
    let file = try disk.open(path + "/MANIFEST.0", .create)
    try file.writeFully(manifest.encoded().rawSpan, at: 0)
    var configuration = EngineConfiguration()
    configuration.access = .readOnly
    let engine = try Engine.open(
      path, configuration: configuration,
      environment: EngineEnvironment(
        fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: 1)))
    var cursor = LogCursor(engine.reader, from: 1, through: 1 << 47)
    var found: [UInt64] = []
    while let entry = try cursor.next() { found.append(entry.sequence) }
    #expect(found == sequences)
    try engine.close()
  }
}
