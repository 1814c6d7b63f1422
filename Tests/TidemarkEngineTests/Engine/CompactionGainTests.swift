import Synchronization
import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("The gain of a compaction")
struct CompactionGainTests {
  var store = TestStore()

  init() {
    store.configuration.dictionaryFromBytes = 64 << 10
  }

  /// Records of the same fields with words of one vocabulary.
  private func fill(_ engine: Engine, count: Int = 600, words length: Int = 24) throws {
    var chance = SeededGenerator(seed: 4)
    let words = (0..<400).map { _ in String(chance.next() >> 24, radix: 36) }
    for i in 0..<count {
      let text = (0..<length).map { _ in words[chance.int(below: words.count)] }
        .joined(separator: " ")
      try engine.put(
        "record/\(100_000 + i)", #"{"number":\#(i),"description":"\#(text)","size":\#(i * 7919)}"#)
    }
  }

  private func compactedLog(
    dense: Bool, _ count: Int, words: Int
  ) throws -> (bytes: Int, hasDictionary: Bool) {
    var other = TestStore()
    other.configuration.dictionaryFromBytes = store.configuration.dictionaryFromBytes
    let engine = try other.open()
    try fill(engine, count: count, words: words)
    let report = try engine.compact(CompactionOptions(dense: dense))
    let segment = try #require(engine.reader.reading.withLock { $0.segments.first })
    let hasDictionary = try segment.codecs().dictionary != nil
    #expect(try engine.get("record/100001")?.hasPrefix(#"{"number":1,"#) == true)
    try engine.close()
    return (report.bytesAfter, hasDictionary)
  }

  @Test(
    "a dense log is smaller than one in the default layout, of records and of whole documents",
    arguments: [(600, 24), (120, 900)])
  func dense(count: Int, words: Int) throws {
    let usual = try compactedLog(dense: false, count, words: words)
    let dense = try compactedLog(dense: true, count, words: words)
    #expect(usual.hasDictionary && dense.hasDictionary)
    #expect(dense.bytes < usual.bytes)
  }

  enum Records: CaseIterable, Sendable { case small, documents, alike, random }

  private func value(_ records: Records, _ i: Int, _ chance: inout SeededGenerator) -> String {
    func words(_ count: Int, of vocabulary: Int) -> String {
      (0..<count).map { _ in String(chance.int(below: vocabulary) &* 7919, radix: 36) }
        .joined(separator: " ")
    }
    return switch records {
    case .small: #"{"id":\#(i),"section":"\#(words(1, of: 9))","size":\#(i * 31)}"#
    case .documents: words(160, of: 3_000)
    case .alike: #"{"maintainer":"somebody <a@example.org>","text":"\#(words(12, of: 40))"}"#
    case .random: words(30, of: 1 << 40)
    }
  }

  @Test(
    "a compaction of what came in large batches drops what goes, and is no larger",
    arguments: Records.allCases, [false, true])
  func noLarger(records: Records, drops: Bool) throws {
    let engine = try store.open()
    var chance = SeededGenerator(seed: 6)
    for first in stride(from: 0, to: 3_000, by: 500) {
      var batch = OperationBatch()
      for i in first..<(first + 500) {
        // Neighbours in the batch are much alike, and far apart in the order of keys.
        let key = bytes("\(i * 7919 % 3_000)/\(records)")
        try batch.add(.put, key: key.rawSpan, value: bytes(value(records, i, &chance)).rawSpan)
      }
      try engine.commit(batch)
      try engine.writer.sealSegments()
    }
    for i in stride(from: 0, to: 3_000, by: 100) { try engine.delete("\(i)/\(records)") }
    try engine.writer.sealSegments()
    let state = try engine.keys()
    let report = try engine.compact(CompactionOptions(dropHistory: drops))
    #expect(report.segmentsRewritten == 7)
    #expect(
      report.bytesAfter <= report.bytesBefore,
      "\(report.bytesBefore) became \(report.bytesAfter)")
    #expect(report.droppedEntries == (drops ? 30 : 0))
    #expect(report.droppedTombstones == report.droppedEntries)
    #expect(try engine.keys() == state)
    try engine.close()
    let found = try StoreVerifier.verify(store.path, environment: store.environment())
    #expect(found.findings == [])
  }

  @Test("a dictionary that takes more than it saves is left out of a dense log")
  func uselessDictionary() throws {
    let engine = try store.open()
    var chance = SeededGenerator(seed: 5)
    for i in 0..<300 {
      try engine.put("k\(i)", (0..<40).map { _ in String(chance.next(), radix: 36) }.joined())
    }
    try engine.compact(CompactionOptions(dense: true))
    let segment = try #require(engine.reader.reading.withLock { $0.segments.first })
    #expect(try segment.kind == .compacted && segment.codecs().dictionary == nil)
    try engine.close()
  }

  @Test(
    "a compaction that has nothing to gain leaves the log as it is, and writes nothing",
    arguments: [false, true])
  func nothingToGain(drops: Bool) throws {
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    try fill(engine, count: 200)
    try engine.put("record/100001", "newer")
    try engine.delete("record/100002")
    #expect(try engine.compact(CompactionOptions(dropHistory: drops)).segmentsRewritten == 1)
    let before = engine.reader.reading.withLock { $0.segments.map(ObjectIdentifier.init) }
    let runs = try engine.status().runs
    disk.once(.before, .write, of: "/store/") { Issue.record("there is nothing to write") }
    let report = try engine.compact(CompactionOptions(dropHistory: drops))
    #expect(report.segmentsRewritten == 0 && report.bytesFreed == 0)
    #expect(report.droppedEntries + report.droppedTombstones == 0)
    #expect(report.bytesAfter == report.bytesBefore)
    #expect(engine.reader.reading.withLock { $0.segments.map(ObjectIdentifier.init) } == before)
    #expect(try engine.status().runs == runs)
  }

  @Test("a log that would get no smaller stays as it is, also where least space is asked for")
  func noSmaller() throws {
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    try engine.put("a", "1")
    for dense in [true, false] {
      let report = try engine.compact(CompactionOptions(dense: dense))
      #expect(report.segmentsRewritten == 0 && report.bytesAfter == report.bytesBefore)
    }
    let segments = engine.reader.reading.withLock { $0.segments.map(\.kind) }
    #expect(segments.first == .appended)
    // The segment does not count as worth another compaction.
    #expect(try engine.compactor.space(from: .max).appended <= FormatConstants.segmentHeaderBytes)
    let isQuiet = Mutex(true)
    disk.once(.before, .write, of: "/store/") { isQuiet.withLock { $0 = false } }
    try engine.compact()
    #expect(isQuiet.withLock { $0 })
    #expect(try store.disk.list("/store/log").count == segments.count)
    try engine.close()
  }

  @Test("a compacted log of which something can go is rewritten without it")
  func laterDrop() throws {
    let engine = try store.open()
    try fill(engine, count: 200)
    try engine.compact()
    for i in 0..<50 { try engine.put("record/\(100_000 + i)", "newer") }
    let report = try engine.compact(CompactionOptions(dropHistory: true))
    #expect(report.segmentsRewritten > 0 && report.droppedEntries == 50)
    #expect(try engine.get("record/100049") == "newer")
    try engine.close()
  }

  @Test("a compaction leaves the runs of the index, and the log stands in for one that is lost")
  func runs() throws {
    let engine = try store.open()
    try engine.put("a", "1")
    try engine.checkpointer.writeRun()
    try engine.put("b", "2")
    try engine.checkpointer.writeRun()
    #expect(try engine.status().runs.count == 1)
    try engine.compact()
    let left = try engine.status().runs
    #expect(left.map(\.sequence) == [2])
    let files = try store.disk.list("/store/index")
    #expect(files == left.map(\.fileName))
    try engine.put("c", "3")
    try engine.close()
    let name = try #require(try store.disk.list("/store/index").first)
    try store.disk.remove("/store/index/" + name)
    let again = try store.open(.write)
    #expect(try again.keys() == ["a", "b", "c"])
    try again.close()
  }

  @Test("a compaction waits for the one that runs, or says at once that it is busy")
  func waiting() throws {
    let engine = try store.open()
    for i in 0..<50 { try engine.put("k", "\(i)") }
    let isFirst = Mutex(true)
    let second = Lock<(thread: WorkerThread?, report: CompactionReport?)>((nil, nil))
    let options = CompactionOptions(dropHistory: true) {
      guard isFirst.withLock({ $0 }) else { return false }
      isFirst.withLock { $0 = false }
      do {
        let error = #expect(throws: TidemarkError.self) {
          try engine.compact(CompactionOptions(waits: false))
        }
        #expect(error?.code == .busy)
        let thread = try WorkerThread(name: "waits") {
          do {
            let report = try engine.compact(CompactionOptions(dropHistory: true))
            second.withLock { $0.report = report }
          } catch { Issue.record(error) }
        }
        second.withLock { $0.thread = thread }
      } catch { Issue.record(error) }
      return false
    }
    let report = try engine.compact(options)
    second.withLock { $0.thread }?.join()
    #expect(report.droppedEntries == 49)
    #expect(second.withLock { $0.report?.droppedEntries } == 0)
    try engine.close()
  }
}
