internal import TidemarkEngine

/// Reads and decodes objects of a collection, apart from their type: code for all types is compiled
/// for none, and slow.
///
/// Keys are looked up many at a time. What the cache does not have is read in the order of the log,
/// so that each block is decoded once, and on two threads where there is enough of it.
struct ObjectFetch: Sendable {
  typealias Row = ObjectCache.Row

  enum Answer: Sendable {
    case object(Row)
    case absent
    case failed(TidemarkError)
  }

  private struct Wanted {
    /// Which of the objects that were asked for.
    var place: Int
    var id: [UInt8]
    var ticket: ObjectCache.Ticket
    var entry = KeyedEntry(hash: 0)
    /// Whether the entry is the newest of its key.
    var isNewest = true
  }

  /// So many objects are worth another thread.
  private static let leastShared = 256
  private static let partMost = 256

  let store: Store
  let prefix: [UInt8]
  /// The collection's number in the cache.
  let owner: UInt32
  /// The state that objects are of; nil for the newest.
  let view: EngineView?
  /// Whether the version that an object was written with matters.
  let needsVersions: Bool
  /// The memory that an object takes beside what it has from its value.
  let objectBytes: Int
  let decode:
    @Sendable (RawSpan, _ version: UInt32, _ id: [UInt8]) throws(TidemarkError) -> ObjectCache.Box

  private var engine: Engine { store.engine }

  /// The objects with some ids, in their order.
  /// - Parameter ids: the ends of their keys.
  func fetch(_ ids: [[UInt8]]) throws(TidemarkError) -> [Answer] {
    try engine.reader.checkReadable()
    if let view { try engine.reader.checkStands(view) }
    let last = view.map { $0.ownTimeLimit == nil ? $0.sequence : 0 } ?? .max
    var answers = [Answer](repeating: .absent, count: ids.count)
    var wanted: [Wanted] = []
    var key = prefix
    let tickets = ids.map { id in
      key.removeSubrange(prefix.count...)
      key += id
      return engine.reader.objectTicket(key.rawSpan, owner: owner)
    }
    for (place, row) in engine.reader.objects.newest(tickets).enumerated() {
      if let row, row.sequence <= last {
        answers[place] = .object(row)
      } else {
        wanted.append(Wanted(place: place, id: ids[place], ticket: tickets[place]))
      }
    }
    if !wanted.isEmpty {
      let entries = try engine.reader.newestEntries(ofKeysWith: prefix, wanted.map(\.id))
      for (number, entry) in entries.enumerated() {
        wanted[number].entry = entry
        if let view, entry.sequence == 0 || entry.sequence > last {
          wanted[number].entry = try older(wanted[number].id, entry, view)
          wanted[number].isNewest = false
        }
      }
      read(wanted.filter { $0.entry.sequence > 0 }, into: &answers)
    }
    if let view { try engine.reader.checkStands(view) }
    return answers
  }

  /// The objects of rows of a scan.
  func fetch(_ rows: ArraySlice<ScanRow>) throws(TidemarkError) -> [Answer] {
    try engine.reader.checkReadable()
    var answers = [Answer](repeating: .absent, count: rows.count)
    read(
      rows.enumerated().map { place, row in
        let ticket = engine.reader.objectTicket(row.key.rawSpan, owner: owner)
        let entry = KeyedEntry(hash: 0, sequence: row.sequence, isTouch: row.isTouch)
        return Wanted(
          place: place, id: Array(row.key[prefix.count...]), ticket: ticket, entry: entry,
          isNewest: false)
      }, into: &answers)
    if let view { try engine.reader.checkStands(view) }
    return answers
  }

  /// The entry of a key in a view that is older than its newest one.
  private func older(
    _ id: [UInt8], _ newest: KeyedEntry, _ view: EngineView
  ) throws(TidemarkError) -> KeyedEntry {
    let key = prefix + id
    let found = try view.entry(forKey: key.rawSpan)
    return KeyedEntry(
      hash: newest.hash, sequence: found?.sequence ?? 0, isTouch: found?.head.kind == .touch)
  }

  // MARK: Reading

  private func read(_ all: [Wanted], into answers: inout [Answer]) {
    var wanted: [Wanted] = []
    for one in all {
      guard var row = engine.reader.objects.row(one.ticket, at: one.entry.sequence) else {
        wanted.append(one)
        continue
      }
      if one.isNewest {
        row.isCached = one.entry.isCached
        engine.reader.objects.keep(row, one.ticket, isNewest: true)
      }
      answers[one.place] = .object(row)
    }
    guard !wanted.isEmpty else { return }
    wanted.sort { $0.entry.sequence < $1.entry.sequence }
    for (one, answer) in zip(wanted, readShared(wanted)) { answers[one.place] = answer }
  }

  /// - Parameter wanted: in the order of their sequences.
  private func readShared(_ wanted: [Wanted]) -> [Answer] {
    guard wanted.count >= Self.leastShared else { return read(wanted[...]) }
    let size = min(Self.partMost, wanted.count / 4)
    let count = (wanted.count + size - 1) / size
    let parts = Lock<[[Answer]]>(Array(repeating: [], count: count))
    SharedWork.forEach(count, usesThread: store.usesThreads) { number in
      let part = read(wanted[(number * size)...].prefix(size))
      parts.withLock { $0[number] = part }
    }
    return parts.withLock { $0.flatMap(\.self) }
  }

  private func read(_ wanted: ArraySlice<Wanted>) -> [Answer] {
    var answers: [Answer] = []
    answers.reserveCapacity(wanted.count)
    let versions = versions(wanted)
    var reader = RowReader(engine.reader)
    // One by itself is read as it is.
    var prepared = wanted.count > 1 ? wanted.startIndex : wanted.endIndex
    for (number, one) in zip(wanted.indices, wanted) {
      if number == prepared {
        prepared += reader.prepare(wanted.endIndex - number) {
          (wanted[number + $0].entry.sequence, wanted[number + $0].entry.isTouch)
        }
      }
      answers.append(answer(one, version: versions[number - wanted.startIndex], &reader))
    }
    return answers
  }

  /// - Parameter version: nil where it is to be looked up.
  private func answer(_ one: Wanted, version: UInt32?, _ reader: inout RowReader) -> Answer {
    do throws(TidemarkError) {
      var row: Row?
      let version =
        if let version { version } else {
          try engine.reader.info(engine.reader.entry(at: one.entry.sequence)).attributes
            .schemaVersion
        }
      try reader.read(one.entry.sequence, isTouch: one.entry.isTouch) {
        (value) throws(TidemarkError) in
        let box = try decode(value, version, one.id)
        row = Row(
          box, at: one.entry.sequence, isCached: one.entry.isCached,
          bytes: value.byteCount + objectBytes)
      }
      guard let row else { return .absent }
      engine.reader.keep(row, one.ticket, isNewest: one.isNewest)
      return .object(row)
    } catch { return .failed(error) }
  }

  /// The schemas that entries were written with, which stand in their attributes; nil for those
  /// that have to be looked up one by one, since an entry cannot be read.
  private func versions(_ wanted: ArraySlice<Wanted>) -> [UInt32?] {
    guard needsVersions else { return Array(repeating: 0, count: wanted.count) }
    var versions = [UInt32?](repeating: nil, count: wanted.count)
    try? engine.reader.entries.forEachInfo(at: wanted.map(\.entry.sequence)) {
      (index, _, info) throws(TidemarkError) in
      versions[index] = info.attributes.schemaVersion
    }
    return versions
  }
}

/// An object by reference, for lists and caches.
final class ObjectBox<Object: Sendable>: Sendable {
  let object: Object

  init(_ object: Object) { self.object = object }
}
