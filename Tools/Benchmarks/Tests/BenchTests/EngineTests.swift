import Foundation
import Testing

@testable import tidemark_bench

/// Every engine gives back what it was given, by every call that is measured.
@Suite("Engines under measurement")
struct EngineTests {
  private static let n = 3000

  private let values = Values(mean: 250)
  private let labels = Labels(n: n)

  private func options(_ path: String, _ level: PutLevel) -> EngineOptions {
    EngineOptions(
      path: path, n: Self.n, values: values, cacheBytes: 8 << 20, level: level, labels: labels)
  }

  private func level(_ engine: EngineName) -> PutLevel { engine.hasBuffered ? .buffered : .async }

  private func inDirectory(_ body: (String) throws -> Void) throws {
    let path = "\(NSTemporaryDirectory())/bench-tests-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: path) }
    try body(path + "/store")
  }

  private func load(_ engine: any BenchEngine) throws {
    let records = Records(values, indices: (0..<Self.n).map { UInt32($0) }, revision: 0)
    for first in stride(from: 0, to: Self.n, by: 1000) {
      try engine.load(records, first..<min(Self.n, first + 1000))
    }
  }

  private func readAll(_ engine: any BenchEngine, _ name: EngineName) throws {
    let reader = try engine.reader()
    defer { reader.close() }
    let key = KeyBuffer()
    var check = Check(values)
    for index in 0..<Self.n { try reader.get(key.key(index), &check) }
    try check.expect(Self.n)
    try reader.scan(from: key.key(0), count: .max, &check)
    try check.expect(2 * Self.n)
    if name.isOrdered {
      try reader.scan(from: key.key(1234), count: 100, &check)
      try check.expect(2 * Self.n + 100)
    }
    let size = labels.sizes(n: Self.n)[3]
    var labelled = Check(values)
    try reader.documents(label: 3, &labelled)
    try labelled.expect(size)
    try reader.keys(label: 3, &labelled)
    try labelled.expect(2 * size)
  }

  private static let stores = EngineName.allCases.filter { $0 != .empty }

  @Test(
    "an engine gives back what was loaded, put and compacted, also after closing", arguments: stores
  )
  func contents(name: EngineName) throws {
    try inDirectory { path in
      let engine = try name.open(options(path, level(name)))
      try load(engine)
      try readAll(engine, name)
      let records = Records(
        values, indices: Order.shuffled(Self.n, count: 500, seed: 7), revision: 3)
      for place in 0..<records.count {
        try engine.put(records.key(place), records.value(place), records.indices[place])
      }
      try readAll(engine, name)
      try engine.compact(dense: false)
      try readAll(engine, name)
      try engine.close()
      let again = try name.open(options(path, .durable))
      try readAll(again, name)
      try again.put(records.key(0), records.value(1), records.indices[0])
      let reader = try again.reader()
      var check = Check(values)
      try reader.get(records.key(0), &check)
      #expect(check.wrong == 1, "a value of another key goes unnoticed")
      reader.close()
      try again.close()
    }
  }

  @Test("an engine has half of the records when the other half is deleted", arguments: stores)
  func deletes(name: EngineName) throws {
    try inDirectory { path in
      let engine = try name.open(options(path, level(name)))
      try load(engine)
      let records = Records(
        values, indices: Order.shuffled(Self.n, count: Self.n / 2, seed: 9), revision: 0)
      try engine.delete(records, 0..<records.count)
      try engine.flush()
      let reader = try engine.reader()
      var check = Check(values)
      let key = KeyBuffer()
      try reader.scan(from: key.key(0), count: .max, &check)
      try check.expect(Self.n / 2)
      reader.close()
      try engine.close()
    }
  }
}
