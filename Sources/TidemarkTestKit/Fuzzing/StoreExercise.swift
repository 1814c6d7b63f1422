internal import Tidemark
internal import TidemarkEngine

/// Does to a store of which nothing is known what programs do. Anything may throw
/// `TidemarkError`; whatever is answered must be right.
struct StoreExercise {
  /// Where a repair writes.
  static let repaired = "/repaired"
  /// No walk over the small stores of the targets is longer.
  private static let rowLimit = 100_000

  let disk: MemoryFileSystem
  /// The contents that may be read; nil when the bytes may say anything.
  let expected: FuzzStore?

  init(_ disk: MemoryFileSystem, expected: FuzzStore?) {
    self.disk = disk
    self.expected = expected
  }

  private var environment: EngineEnvironment {
    EngineEnvironment(fileSystem: disk, clock: ManualClock(), random: SeededRandom(seed: 3))
  }

  private func open(
    _ path: String, _ access: Store.Access, _ recovery: Store.Recovery = .strict
  ) -> Store? {
    try? Store.openBlocking(
      at: path, configuration: FuzzStore.configuration(disk, access, recovery))
  }

  // MARK: Reading

  /// Opens for reading, strictly and for salvage, and reads everything in every way.
  func read(path: String = FuzzDisk.path) throws(FuzzFinding) {
    for recovery in [Store.Recovery.strict, .salvage] {
      guard let store = open(path, .readOnly, recovery) else { continue }
      try readAll(store)
      try? store.blocking.refresh()
      try? store.blocking.close()
    }
  }

  private func readAll(_ store: Store) throws(FuzzFinding) {
    _ = try? store.labels()
    _ = try? store.count()
    _ = try? store.status
    let keys = (expected?.keys ?? []).prefix(12).map(Key.init) + ["note/1", "batch/0", "none"]
    for key in keys {
      try check(try? store.entry(forKey: key), key)
      _ = try? store.value(forKey: key)
      _ = try? store.explain(key)
      for entry in (try? store.history(ofKey: key)) ?? [] { try check(entry, key) }
    }
    try scan(store)
    try log(store)
    let last = store.lastSequence
    for sequence in [1, last / 2, last] {
      guard let view = try? store.view(at: sequence) else { continue }
      try scan(view, orders: [.key])
      try check(try? view.entry(forKey: "note/1"), "note/1")
    }
    _ = try? store.diff(from: last / 2, to: last)
    _ = try? store.view(at: Timestamp(seconds: 1_767_000_010))
  }

  private func scan(
    _ reader: some StoreReader, orders: [EntryQuery.Order] = [.key, .sequence, .time]
  ) throws(FuzzFinding) {
    for order in orders {
      for filter in [LabelFilter.everything, .all("inbox")] {
        let query = EntryQuery(labels: filter, order: order, descending: order == .time)
        guard var rows = try? reader.entries(query) else { continue }
        var count = 0
        while let entry = try? rows.next() {
          try check(entry, nil)
          count += 1
          guard count < Self.rowLimit else { throw FuzzFinding("a scan does not end") }
        }
      }
    }
  }

  private func log(_ store: Store) throws(FuzzFinding) {
    guard var rows = try? store.entries(since: nil) else { return }
    var last: UInt64 = 0
    while let entry = try? rows.next() {
      // Frames of a sorted segment may hold a sequence twice when somebody has made them so.
      guard entry.sequence > last || (expected == nil && entry.sequence == last) else {
        throw FuzzFinding("the log goes back")
      }
      last = entry.sequence
      try check(entry, nil)
    }
  }

  private func check(_ entry: Entry?, _ key: Key?) throws(FuzzFinding) {
    guard let entry else { return }
    if let key, entry.key != key { throw FuzzFinding("an entry of another key") }
    guard let expected else { return }
    guard let version = expected.versions[entry.sequence], version.key == entry.key.bytes else {
      throw FuzzFinding("sequence \(entry.sequence) is of another key")
    }
    let isThere = entry.kind == .put || entry.kind == .touch
    guard version.value == (isThere ? entry.value : nil) else {
      throw FuzzFinding("sequence \(entry.sequence) has another value")
    }
  }

  // MARK: Upkeep

  /// Verifies the store.
  func verify() throws(FuzzFinding) {
    for records in [false, true] {
      _ = try? StoreVerifier.verify(
        FuzzDisk.path, environment: environment, recordsDamage: records)
    }
  }

  /// Repairs the store into another directory and reads that.
  /// - Returns: whether there is a repaired store.
  func repair() throws(FuzzFinding) -> Bool {
    let report = try? StoreRepair.repair(
      from: FuzzDisk.path, into: Self.repaired, environment: environment)
    guard report != nil else { return false }
    guard let store = open(Self.repaired, .readOnly) else {
      throw FuzzFinding("a repaired store cannot be opened")
    }
    try readAll(store)
    try? store.blocking.close()
    return true
  }

  /// Opens for writing, writes, compacts, closes, opens again: what was written must be there.
  func write(path: String) throws(FuzzFinding) {
    guard let store = open(path, .write) else { return }
    let value = Array("written now".utf8)
    var written: [Key] = []
    for key in ["note/1", "new/1"] as [Key] {
      guard (try? store.blocking.put(key, value, labels: ["inbox", "new"])) != nil else { continue }
      written.append(key)
      try expect(store, key, value)
    }
    _ = try? store.blocking.delete("note/2")
    _ = try? store.blocking.touch("note/3", maxAge: .seconds(5))
    var batch = WriteBatch()
    for number in 0..<3 { try? batch.put("new/batch/\(number)", value) }
    _ = try? store.blocking.write(batch)
    try? store.blocking.snapshot()
    _ = try? store.blocking.compact()
    for key in written { try expect(store, key, value) }
    _ = try? store.blocking.compact(dropHistory: true, dense: true)
    _ = try? store.blocking.put("note/4", value)
    try? store.blocking.flush()
    try? store.blocking.close()
    guard let again = open(path, .write) else { return }
    for key in written { try expect(again, key, value) }
    _ = try? again.count()
    try? again.blocking.close()
  }

  /// The value must be read as it was written, unless reading fails.
  private func expect(_ store: Store, _ key: Key, _ value: [UInt8]) throws(FuzzFinding) {
    do throws(TidemarkError) {
      guard try store.value(forKey: key) == value else {
        throw TidemarkError(.conflict, "")
      }
    } catch {
      guard error.code != .conflict else {
        throw FuzzFinding("what was just written reads otherwise")
      }
    }
  }
}
