import Foundation

extension StageRun {
  /// Values that are made at a time, so that ten million of them need not be in memory at once.
  private static let mostBytesAhead = 1 << 30

  /// Loads all records in the order of their keys.
  func loadAll(_ engine: any BenchEngine) throws -> Cost {
    var cost = Cost(wall: 0, processor: 0)
    let portion = max(
      Self.batch, min(n, Self.mostBytesAhead / (values.mean + 32)) / Self.batch * Self.batch)
    for first in stride(from: 0, to: n, by: portion) {
      let indices = (first..<min(n, first + portion)).map { UInt32($0) }
      let records = Records(values, indices: indices, revision: 0)
      cost = try cost + write(records) { range in try engine.load(records, range) }
    }
    return cost
  }

  /// Hands records over in batches.
  private func write(_ records: Records, _ body: (Range<Int>) throws -> Void) rethrows -> Cost {
    try Cost {
      for first in stride(from: 0, to: records.count, by: Self.batch) {
        try body(first..<min(records.count, first + Self.batch))
      }
    }
  }

  func load() throws {
    let engine = try engine()
    let before = Memory.now()
    let cost = try loadAll(engine)
    // Values made ahead are gone again, as far as the allocator gives memory back.
    let memory = Memory.now() - before
    show(Measure("P1", rate: n, cost))
    try engine.close()
    let more = ["mapped": Double(memory.mapped) / 1e6]
    show(Measure("P14d", Double(memory.own) / 1e6, more: more))
    showDisk("P13")
  }

  func loadLabels() throws {
    let engine = try engine(labelled: true)
    let cost = try loadAll(engine)
    show(Measure("P1L", rate: n, cost))
    try engine.close()
  }

  func showDisk(_ row: String) {
    let raw = Double(n * (values.mean + KeyText.byteCount)) / 1e6
    show(Measure(row, Double(Disk.bytes(order.path)) / 1e6, more: ["raw": raw]))
  }

  /// Overwrites what makes it 1.65 n entries in all, in batches; unmeasured.
  func churn() throws {
    let engine = try engine(labelled: true)
    let count = n * 65 / 100
    let records = Records(
      values, indices: Order.shuffled(n, count: count, seed: seed()), revision: revision)
    for first in stride(from: 0, to: count, by: Self.batch) {
      for place in first..<min(count, first + Self.batch) {
        try engine.put(records.key(place), records.value(place), records.indices[place])
      }
    }
    try engine.close()
  }

  func compact() throws {
    let engine = try engine(labelled: true)
    let cost = try Cost { try engine.compact(dense: false) }
    show(Measure("C", cost.wall, processor: cost.microseconds(n)))
    try engine.close()
    showDisk("P13c")
  }

  /// Deletes a random half in batches, and syncs at the end.
  func delete() throws {
    let engine = try engine()
    let records = Records(
      values, indices: Order.shuffled(n, count: n / 2, seed: seed()), revision: 0)
    var cost = try write(records) { range in try engine.delete(records, range) }
    cost = try cost + Cost { try engine.flush() }
    show(Measure("P12", rate: records.count, cost))
    try engine.close()
  }
}
