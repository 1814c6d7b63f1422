import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// After a key was deleted and the history dropped, no part of its value may be in a file.
@Suite("Erasure") struct ErasureTests {
  private var store: TestStore

  init() {
    store = TestStore()
    store.configuration.dictionaryFromBytes = 16 << 10
  }

  private static let pieceBytes = 8

  /// The pieces of secrets that some bytes contain.
  private func count(_ pieces: Set<[UInt8]>, in bytes: [UInt8]) -> Int {
    guard bytes.count >= Self.pieceBytes else { return 0 }
    return (0...(bytes.count - Self.pieceBytes)).count {
      pieces.contains(Array(bytes[$0..<($0 + Self.pieceBytes)]))
    }
  }

  /// The values in a store's log, one behind the other, as they are once decompressed.
  private func values(_ engine: Engine) throws -> [UInt8] {
    var values: [UInt8] = []
    for segment in engine.reader.reading.withLock({ $0.segments }) {
      var frames = try FrameReader(segment)
      for record in try segment.frames() {
        let front = try frames.front(record)
        for head in front.entries where head.hasValue {
          try frames.appendValue(of: head, in: front, to: &values)
        }
      }
    }
    return values
  }

  @Test(
    "a deleted value is in no file and no zstd dictionary once the history was dropped",
    arguments: [true, false])
  func deleted(wasCompacted: Bool) throws {
    var chance = SeededGenerator(seed: 11)
    var pieces: Set<[UInt8]> = []
    let engine = try store.open(seed: 11)
    for number in 0..<3_000 {
      let text = "{\"title\":\"a note of the day \(number)\",\"done\":\(number % 2 == 0)}"
      try engine.put("note/\(number)", text)
      guard number % 3 == 0 else { continue }
      let secret = (0..<24).map { _ in UInt8(97 + chance.int(below: 26)) }
      for start in 0...(secret.count - Self.pieceBytes) {
        pieces.insert(Array(secret[start..<(start + Self.pieceBytes)]))
      }
      // In three values each, so that a dictionary would learn it.
      for copy in 0..<3 {
        let text = String(decoding: secret, as: UTF8.self)
        try engine.put(
          "plain/\(number)/\(copy)", "{\"title\":\"a note of the day\",\"secret\":\"\(text)\"}")
      }
    }
    if wasCompacted { try engine.compact() }
    #expect(count(pieces, in: try values(engine)) > 0)
    for number in stride(from: 0, to: 3_000, by: 3) {
      for copy in 0..<3 { try engine.delete("plain/\(number)/\(copy)") }
    }
    try engine.compact(CompactionOptions(dropHistory: true))
    let compacted = engine.reader.reading.withLock { $0.segments.filter(\.isSealed) }
    #expect(compacted.map(\.kind) == [.compacted])
    #expect(count(pieces, in: try values(engine)) == 0)
    try engine.close()
    for path in store.disk.files() {
      #expect(count(pieces, in: store.disk.contents(of: path) ?? []) == 0, "\(path)")
    }
  }

  @Test("no file has bytes of cached values that were erased while a compaction ran")
  func erasedMeanwhile() throws {
    var chance = SeededGenerator(seed: 13)
    func text(_ count: Int) -> String {
      String(decoding: (0..<count).map { _ in UInt8(97 + chance.int(below: 26)) }, as: UTF8.self)
    }
    let disk = HookedDisk(store.disk)
    let engine = try store.open(on: disk)
    // Keys before the cached ones, with 3 MB: a compaction writes its output from 2 MB on, so it
    // writes for the first time before it merges a cached key.
    for number in 0..<3_000 { try engine.put("a/\(number)", "{\"title\":\"\(text(1_000))\"}") }
    var pieces: Set<[UInt8]> = []
    for number in 0..<3_000 {
      let secret = text(24)
      if number % 3 == 0 {
        let bytes = Array(secret.utf8)
        for start in 0...(bytes.count - Self.pieceBytes) {
          pieces.insert(Array(bytes[start..<(start + Self.pieceBytes)]))
        }
      }
      try engine.cache("z/\(number)", "{\"title\":\"a page\",\"secret\":\"\(secret)\"}")
    }
    try engine.writer.sealSegments()
    let run = engine.reader.manifest.runs.first?.id
    let failure = Lock<(any Error)?>(nil)
    let worker = Lock<WorkerThread?>(nil)
    disk.once(.before, .write, of: "/log/") {
      do {
        let thread = try WorkerThread(name: "erases") {
          do {
            for number in stride(from: 0, to: 3_000, by: 3) { try engine.evict("z/\(number)") }
            // Only what something durable has replaced is dropped.
            try engine.writer.flush()
            try engine.eraseGivenUp()
          } catch { failure.withLock { $0 = error } }
        }
        worker.withLock { $0 = thread }
        // Until the erasure has written the index, and has the time to wait for this compaction.
        while engine.reader.manifest.runs.first?.id == run, failure.withLock({ $0 == nil }) {
          _ = Monitor(()).wait(timeoutNanoseconds: 100_000) { _ in false }
        }
        _ = Monitor(()).wait(timeoutNanoseconds: 20_000_000) { _ in false }
      } catch { Issue.record(error) }
    }
    try engine.compact()
    let erasing = try #require(worker.withLock { $0 }, "the compaction has written nothing")
    erasing.join()
    #expect(failure.withLock { $0 } == nil)
    #expect(count(pieces, in: try values(engine)) == 0)
    let segments = engine.reader.reading.withLock { $0.segments.filter(\.isSealed) }
    #expect(try segments.contains { try $0.codecs().dictionary != nil })
    try engine.close()
    for path in store.disk.files() {
      #expect(count(pieces, in: store.disk.contents(of: path) ?? []) == 0, "\(path)")
    }
  }

  /// Whether a compaction that drops the history trains a dictionary.
  private func trainsDictionary(_ engine: Engine) throws -> Bool {
    try engine.compact(CompactionOptions(dropHistory: true))
    let segment = engine.reader.reading.withLock { $0.segments.first { $0.kind == .compacted } }
    return try #require(segment).codecs().dictionary != nil
  }

  @Test("a dictionary is trained even if most versions are superseded or all keys were touched")
  func touchedAndFew() throws {
    let engine = try store.open(seed: 12)
    for version in 0..<6 {
      for number in 0..<1_000 {
        try engine.put(
          "note/\(number)", "{\"title\":\"note \(number)\",\"version\":\(version),\"done\":false}")
      }
    }
    #expect(try trainsDictionary(engine))
    for number in 0..<1_000 { try engine.touch("note/\(number)") }
    #expect(try trainsDictionary(engine))
    try engine.close()
  }
}
