internal import TidemarkEngine

/// A key that is not the same in two states.
struct StateDifference {
  enum Kind {
    case added, removed, changed
  }

  var key: [UInt8]
  var kind: Kind
  /// Its sequence in each state; nil where it is absent.
  var from: UInt64?
  var to: UInt64?
  /// The fields that changed: value, labels, hash.
  var fields: [String] = []
}

/// Walks two states of a store side by side in key order.
struct StateComparison {
  private let engine: Engine
  private var old: RowReader
  private var new: RowReader

  init(
    _ engine: Engine, _ query: ScanQuery, from: UInt64, to: UInt64
  ) throws(TidemarkError) {
    self.engine = engine
    old = RowReader(EngineScan(engine, query, view: try engine.view(at: from)))
    new = RowReader(EngineScan(engine, query, view: try engine.view(at: to)))
  }

  /// The next difference in key order; nil at the end.
  mutating func next() throws(TidemarkError) -> StateDifference? {
    while true {
      let before = try old.peek()
      let after = try new.peek()
      switch (before, after) {
      case (nil, nil): return nil
      case (let before?, nil): return removed(before)
      case (nil, let after?): return added(after)
      case (let before?, let after?):
        let order = before.key.rawSpan.compare(to: after.key.rawSpan)
        if order < 0 { return removed(before) }
        if order > 0 { return added(after) }
        old.advance()
        new.advance()
        if before.sequence == after.sequence { continue }
        let fields = try changes(before, after)
        if fields.isEmpty { continue }
        return StateDifference(
          key: before.key, kind: .changed, from: before.sequence, to: after.sequence,
          fields: fields)
      }
    }
  }

  private mutating func removed(_ row: ScanRow) -> StateDifference {
    old.advance()
    return StateDifference(key: row.key, kind: .removed, from: row.sequence)
  }

  private mutating func added(_ row: ScanRow) -> StateDifference {
    new.advance()
    return StateDifference(key: row.key, kind: .added, to: row.sequence)
  }

  /// The fields that differ between two entries of a key. A key that was written again with the
  /// same content is none.
  private func changes(_ a: ScanRow, _ b: ScanRow) throws(TidemarkError) -> [String] {
    let before = try engine.info(try engine.entry(at: a.sequence))
    let after = try engine.info(try engine.entry(at: b.sequence))
    var fields: [String] = []
    if before.valueSequence != after.valueSequence {
      let same =
        before.valueLength == after.valueLength
        ? try engine.value(of: before) == engine.value(of: after) : false
      if !same { fields.append("value") }
      if before.labels != after.labels { fields.append("labels") }
    }
    if before.attributes.hash != after.attributes.hash { fields.append("hash") }
    return fields
  }
}

/// The rows of a scan one by one.
private struct RowReader {
  private static let page = 1024
  private let scan: EngineScan
  private var rows: [ScanRow] = []
  private var position = 0

  init(_ scan: EngineScan) { self.scan = scan }

  /// The next row, which stays the next one; nil at the end.
  mutating func peek() throws(TidemarkError) -> ScanRow? {
    if position == rows.count {
      rows = try scan.nextPage(limit: Self.page)
      position = 0
    }
    return position < rows.count ? rows[position] : nil
  }

  mutating func advance() { position += 1 }
}
