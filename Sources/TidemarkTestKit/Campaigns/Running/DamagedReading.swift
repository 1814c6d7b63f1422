internal import TidemarkEngine

/// Reads everything from a store that may be damaged: each answer is right, or an error.
struct DamagedReading {
  private let engine: Engine
  private let model: ModelStore
  private let sequence: UInt64

  init(_ engine: Engine, _ model: ModelStore, at sequence: UInt64) {
    self.engine = engine
    self.model = model
    self.sequence = sequence
  }

  func check() throws {
    let rows = model.state(at: sequence)
    var keys = Set(rows.keys)
    var written: [UInt64: [UInt8]] = [:]
    for entry in model.entries {
      keys.insert(entry.key)
      written[entry.sequence] = entry.key
    }
    for key in keys.sortedBytes() {
      try orDamage {
        let right = rows[key]?.value
        let isRight = try engine.reader.withValue(forKey: key.rawSpan) {
          (value, _) throws(TidemarkError) in right.map { value.isEqual(to: $0.rawSpan) } ?? false
        }
        guard isRight ?? (right == nil) else {
          throw ScriptViolation("key \(ModelStore.readable(key)) reads wrongly")
        }
      }
    }
    try orDamage {
      let runner = ScriptRunner(disk: SimulatedFileSystem(), seed: 0)
      let found = try runner.rows(ModelQuery(), in: engine.reader.view())
      if let problem = model.mismatch(of: found, ModelQuery(), at: sequence) {
        throw ScriptViolation("state: \(problem)")
      }
    }
    try orDamage {
      let found = try engine.reader.labelCounts()
      let right = model.labels(at: sequence)
      guard found.map(\.label) == right.map(\.label), found.map(\.count) == right.map(\.keys)
      else { throw ScriptViolation("labels are counted wrongly") }
    }
    try orDamage {
      var cursor = LogCursor(engine.reader, from: 1, through: engine.reader.lastSequence)
      while let entry = try cursor.next() {
        guard written[entry.sequence] == entry.key else {
          throw ScriptViolation("entry \(entry.sequence) was never written")
        }
      }
    }
  }

  private func orDamage(_ body: () throws -> Void) throws {
    do { try body() } catch let error as TidemarkError {
      try BitSweep.expectDamage(error)
    }
  }
}
