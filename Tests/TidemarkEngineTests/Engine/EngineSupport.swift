import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// An engine on a simulated disk, with short-cuts for tests.
struct TestStore {
  let disk: SimulatedFileSystem
  let clock = ManualClock()
  var configuration = EngineConfiguration()
  var path = "/store"

  init(seed: UInt64 = 1) {
    disk = SimulatedFileSystem(seed: seed)
    configuration.doesBackgroundWorkInline = true
  }

  func environment(seed: UInt64 = 7) -> EngineEnvironment {
    EngineEnvironment(fileSystem: disk, clock: clock, random: SeededRandom(seed: seed))
  }

  func open(_ access: EngineConfiguration.Access = .create, seed: UInt64 = 7) throws -> Engine {
    var configuration = configuration
    configuration.access = access
    return try Engine.open(path, configuration: configuration, environment: environment(seed: seed))
  }
}

func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

extension Engine {
  @discardableResult
  func put(
    _ key: String, _ value: String, labels: [String] = [], durability: Durability? = nil
  ) throws -> UInt64 {
    var batch = OperationBatch()
    let set = try batch.addLabelSet(labels.map { bytes($0) })
    try batch.add(.put, key: bytes(key).rawSpan, value: bytes(value).rawSpan, labelSet: set)
    return try commit(batch, durability: durability).sequences.lowerBound
  }

  @discardableResult
  func delete(_ key: String) throws -> Bool {
    var batch = OperationBatch()
    try batch.add(.delete, key: bytes(key).rawSpan)
    return try commit(batch).applied > 0
  }

  @discardableResult
  func touch(_ key: String) throws -> Bool {
    var batch = OperationBatch()
    try batch.add(.touch, key: bytes(key).rawSpan)
    return try commit(batch).applied > 0
  }

  func get(_ key: String) throws -> String? {
    try reader.withValue(forKey: bytes(key).rawSpan) { (value, _) throws(TidemarkError) in
      String(decoding: [UInt8](copying: value), as: UTF8.self)
    }
  }

  func get(_ key: String, in view: EngineView) throws -> String? {
    guard let entry = try view.entry(forKey: bytes(key).rawSpan) else { return nil }
    return try reader.withValue(of: entry.sequence, isTouch: entry.head.kind == .touch) {
      (value, _) throws(TidemarkError) in
      String(decoding: [UInt8](copying: value), as: UTF8.self)
    }
  }

  func keys(
    _ query: ScanQuery = ScanQuery(), in view: EngineView? = nil
  ) throws -> [String] {
    let scan = EngineScan(reader, query, view: try view ?? reader.view())
    var keys: [String] = []
    while true {
      let rows = try scan.nextPage(limit: 7)
      if rows.isEmpty { return keys }
      keys += rows.map { String(decoding: $0.key, as: UTF8.self) }
    }
  }
}
