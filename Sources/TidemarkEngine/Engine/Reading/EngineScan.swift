/// Which keys to scan for, and in which order.
package struct ScanQuery: Sendable {
  package enum Order: Sendable, Hashable { case key, sequence, time }

  package var from = KeyBound.start
  package var upTo = KeyBound.end
  package var labels = LabelQuery()
  /// Only entries whose own time, or where they have none the commit time, is this or later.
  package var since: Timestamp?
  /// Only entries whose time is before this one.
  package var until: Timestamp?
  package var order = Order.key
  package var descending = false

  package init() {}

  /// All keys that begin with a prefix.
  package init(prefix: [UInt8]) {
    from = prefix.isEmpty ? .start : .including(prefix)
    upTo = prefix.isEmpty ? .end : .afterPrefix(prefix)
  }

  /// How far a scan reads in one piece: to its end, or to derived keys, after which `beyond` comes.
  fileprivate func stretch(from start: KeyBound) -> (last: KeyBound, beyond: KeyBound?) {
    let last = descending ? from : upTo
    // A scan of derived keys (rows of secondary indexes) reads these, which others leave out.
    if case .including(let key) = from, DerivedKeys.contains(key.rawSpan) { return (last, nil) }
    // They lie from `first` on and before `behind`, the first possible key after them.
    guard case .excluding(let behind) = KeyBound.afterPrefix(DerivedKeys.prefix) else {
      return (last, nil)
    }
    let first = DerivedKeys.prefix
    let lower = (descending ? last : start).cut(isLower: true)
    let upper = (descending ? start : last).cut(isLower: false)
    if descending {
      guard upper.lies(behind: behind), lower.lies(before: behind) else { return (last, nil) }
      return (.including(behind), lower.lies(before: first) ? .excluding(first) : nil)
    }
    guard lower.lies(before: first), upper.lies(behind: first) else { return (last, nil) }
    return (.excluding(first), upper.lies(behind: behind) ? .including(behind) : nil)
  }
}

/// The last row that a scan has returned: an equal query can go on after it later.
package enum ScanPosition: Sendable, Hashable {
  case start
  case key([UInt8])
  case sequence(UInt64)
  case time(Timestamp, UInt64)
}

/// A scan over one view (the state as of a sequence, which compaction keeps), in pages, so that the
/// readers' lock is held for a page at most. One caller at a time uses it.
package final class EngineScan {
  let reader: Reader
  private let query: ScanQuery
  package let view: EngineView
  package private(set) var position: ScanPosition
  /// In key order, where the next page begins: after keys that were looked at, wanted or not.
  private var resumption: KeyBound?
  private var isAtEnd = false
  /// In orders other than the key's: all rows, in order; nil before the first page.
  private var sorted: [(row: ScanRow, time: Timestamp)]?
  private var nextSorted = 0

  /// - Parameter after: where an earlier scan of the same query stopped.
  package init(
    _ reader: Reader, _ query: ScanQuery, view: EngineView, after: ScanPosition = .start
  ) {
    self.reader = reader
    self.query = query
    self.view = view
    position = after
    if case .key(let key) = after { resumption = Self.start(of: query, behind: key) }
  }

  /// Where a scan goes on after a key: never before the query's own bound, wherever the key lies.
  private static func start(of query: ScanQuery, behind key: [UInt8]) -> KeyBound {
    let bound = query.descending ? query.upTo : query.from
    let isBehind = bound.cut(isLower: !query.descending).precedes(key.rawSpan)
    return isBehind == query.descending ? bound : .excluding(key)
  }

  /// The next rows, each with a key of its own.
  /// - Returns: up to `limit`; none at the end.
  package func nextPage(limit: Int) throws(TidemarkError) -> [ScanRow] {
    let page = try nextRows(limit: limit)
    return (0..<page.count).map { page.row(at: $0) }
  }

  /// The next rows, as many as are worth reading together, with some megabytes of keys at most.
  /// - Returns: none at the end.
  package func nextPage(upTo limit: Int) throws(TidemarkError) -> [ScanRow] {
    let most = min(limit, LogEntries.mostTogether)
    var rows: [ScanRow] = []
    var bytes = 0
    while rows.count < most, bytes < Self.keyBytesTogether {
      let page: [ScanRow]
      do throws(TidemarkError) {
        page = try nextPage(limit: min(most - rows.count, Self.rowsAtOnce))
      } catch {
        // Rows that were found are returned first; the next call meets the same error again.
        if rows.isEmpty { throw error }
        break
      }
      if page.isEmpty { break }
      for row in page { bytes += row.key.count }
      rows += page
    }
    return rows
  }

  private static let rowsAtOnce = 1_024
  static let keyBytesTogether = 4 << 20

  /// The position after one of the rows that the last call returned.
  package func position(behind index: Int, of rows: [ScanRow]) -> ScanPosition {
    let row = rows[index]
    return switch query.order {
    case .key: .key(row.key)
    case .sequence: .sequence(row.sequence)
    case .time:
      sorted.map { .time($0[nextSorted - rows.count + index].time, row.sequence) } ?? position
    }
  }

  /// The next rows, whose keys share one piece of memory.
  /// - Returns: up to `limit`; none at the end.
  package func nextRows(limit: Int) throws(TidemarkError) -> ScanPage {
    query.order == .key ? try nextInKeyOrder(limit: limit) : ScanPage(try nextSorted(limit: limit))
  }

  private func nextInKeyOrder(limit: Int) throws(TidemarkError) -> ScanPage {
    while !isAtEnd {
      let (keys, carries, beyond) = try nextKeys(limit: limit)
      var rows = ScanPage(keys, isOfPresent: carries == nil)
      // An error below leaves the scan where it is: the next call reads the same keys again.
      let wasLast = isAtEnd
      isAtEnd = false
      for i in 0..<keys.count {
        let slot = keys.slot(at: i)
        if let carries {
          try appendPast(i, keys.key(at: i), slot, carries: carries[i], to: &rows)
        } else {
          rows.append(key: i, sequence: slot.sequence, isTouch: slot.size.isTouched)
        }
      }
      if query.since != nil || query.until != nil { rows.filter(try areInTime(rows.sequences)) }
      isAtEnd = wasLast
      resumption = beyond ?? keys.resumption
      if rows.isEmpty { continue }
      position = .key([UInt8](copying: rows.key(at: rows.count - 1)))
      return rows
    }
    return ScanPage(KeyPage())
  }

  /// The next keys of the index, with their newest entries.
  /// - Returns: `carries` is nil if these entries are the view's. In a view of the past it tells
  ///   which of them carry the wanted labels, judged under the lock that read them, since ids of
  ///   label sets are good only until the next run is published. `beyond`: see `stretch`.
  private func nextKeys(
    limit: Int
  ) throws(TidemarkError) -> (keys: KeyPage, carries: [Bool]?, beyond: KeyBound?) {
    let first = query.descending ? query.upTo : query.from
    let start = resumption ?? first
    let (last, beyond) = query.stretch(from: start)
    var page = KeyPage(room: min(limit, 1_024))
    let carries = try reader.withIndex { (read) throws(IndexOrStoreError) -> [Bool]? in
      // Damage may hide a key in any range, so no scan is right while there is some.
      if read.uncertainBelow > 0 { throw .store(TidemarkError.possiblyStale(read.uncertainBelow)) }
      // The index knows newest entries only. They are the view's if nothing was written since, and
      // if no crash has taken the view's sequence back and given it to another entry (`hasKept`).
      let isPast =
        read.visible != view.sequence || view.ownTimeLimit != nil
        || !read.hasKept(view.sequence, of: view.epoch)
      do throws(TidemarkError) { if isPast { try Reader.checkStands(view, read) } } catch {
        throw .store(error)
      }
      do throws(IndexError) {
        let isLast =
          query.labels.isEmpty
          ? try read.index.page(
            from: start, upTo: last, descending: query.descending, limit: limit,
            includeDeleted: isPast, into: &page)
          : try read.index.page(
            matching: query.labels, from: start, upTo: last, descending: query.descending,
            limit: limit, includeFormer: isPast, into: &page)
        let carries = isPast ? try matches(page, read.index.labelTable) : nil
        isAtEnd = isLast
        return carries
      } catch { throw .index(error) }
    }
    guard isAtEnd, let beyond else { return (page, carries, nil) }
    isAtEnd = false
    return (page, carries, beyond)
  }

  /// Which entries have a time within the query's bounds.
  private func areInTime(_ sequences: [UInt64]) throws(TidemarkError) -> [Bool] {
    var areInTime = [Bool](repeating: true, count: sequences.count)
    try reader.entries.forEachInfo(at: sequences) { (index, _, info) throws(TidemarkError) in
      if let since = query.since, info.time < since { areInTime[index] = false }
      if let until = query.until, info.time >= until { areInTime[index] = false }
    }
    return areInTime
  }

  /// Which newest entries of the page's keys carry the wanted labels; called under the lock.
  private func matches(_ page: KeyPage, _ table: LabelTable) throws(IndexError) -> [Bool] {
    guard !query.labels.isEmpty else { return Array(repeating: true, count: page.count) }
    var known: [UInt32: Bool] = [:]
    var carries: [Bool] = []
    carries.reserveCapacity(page.count)
    for i in 0..<page.count {
      let set = page.slot(at: i).labelSet
      if known[set] == nil { known[set] = query.labels.matches(try table.labels(ofSet: set)) }
      carries.append(known[set] ?? false)
    }
    return carries
  }

  /// Adds a key with its entry in a view of the past, if it was there and matches.
  /// - Parameter carries: whether `slot`, the key's newest entry now, carries the wanted labels.
  private func appendPast(
    _ number: Int, _ key: RawSpan, _ slot: Slot, carries: Bool, to rows: inout ScanPage
  ) throws(TidemarkError) {
    // A newest entry up to the view's sequence is the view's, unless entries' own times decide.
    if view.ownTimeLimit == nil, slot.sequence <= view.sequence {
      guard !slot.isDeleted, carries else { return }
      return rows.append(key: number, sequence: slot.sequence, isTouch: slot.size.isTouched)
    }
    guard let entry = try view.version(newest: slot.sequence),
      !entry.head.kind.removes
    else { return }
    if !query.labels.isEmpty {
      let labels = try reader.info(entry).labels
      guard query.labels.matches(labels) else { return }
    }
    rows.append(key: number, sequence: entry.sequence, isTouch: entry.head.kind == .touch)
  }

  /// The next rows in another order than the key's; the first call gathers and sorts all.
  private func nextSorted(limit: Int) throws(TidemarkError) -> [ScanRow] {
    if sorted == nil { sorted = try gather() }
    let rows = sorted ?? []
    let end = min(nextSorted + limit, rows.count)
    let page = rows[nextSorted..<end].map(\.row)
    nextSorted = end
    if let last = page.last, end > 0 {
      position =
        query.order == .sequence
        ? .sequence(last.sequence) : .time(rows[end - 1].time, last.sequence)
    }
    return page
  }

  /// All rows in the query's order; `nextSorted` becomes the first one after `position`.
  private func gather() throws(TidemarkError) -> [(row: ScanRow, time: Timestamp)] {
    var byKey = query
    byKey.order = .key
    byKey.descending = false
    let scan = EngineScan(reader, byKey, view: view)
    var rows: [(row: ScanRow, time: Timestamp)] = []
    while true {
      let page = try scan.nextPage(limit: 1024)
      if page.isEmpty { break }
      for row in page { rows.append((row, Timestamp(seconds: 0))) }
    }
    if query.order == .time {
      for first in stride(from: 0, to: rows.count, by: LogEntries.mostTogether) {
        let part = rows[first...].prefix(LogEntries.mostTogether).map(\.row)
        try reader.entries.forEachInfo(of: part) { (index, info) throws(TidemarkError) in
          rows[first + index].time = info.time
        }
      }
    }
    // In order of sequence all times are 0, so sequences decide.
    rows.sort { ($0.time, $0.row.sequence) < ($1.time, $1.row.sequence) }
    if query.descending { rows.reverse() }
    let last: (Timestamp, UInt64)
    switch position {
    case .start, .key: return rows
    case .sequence(let sequence): last = (Timestamp(seconds: 0), sequence)
    case .time(let time, let sequence): last = (time, sequence)
    }
    let descending = query.descending
    let start = rows.firstIndex { (row, time) in
      descending ? (time, row.sequence) < last : (time, row.sequence) > last
    }
    nextSorted = start ?? rows.count
    return rows
  }
}

extension EngineView {
  /// Calls `body` with every key of class `owned` (the user's own data, not cached) and its value.
  /// - Parameter wants: which keys are wanted; the values of others are not read.
  package func scanOwned(
    wants: ([UInt8]) -> Bool,
    _ body: (_ key: [UInt8], EntryInfo, RawSpan) throws(TidemarkError) -> Void
  ) throws(TidemarkError) {
    let scan = EngineScan(reader, ScanQuery(), view: self)
    while true {
      let rows = try scan.nextPage(upTo: LogEntries.mostTogether)
      if rows.isEmpty { return }
      let wanted = rows.filter { wants($0.key) }
      try reader.entries.forEachInfo(of: wanted) { (index, info) throws(TidemarkError) in
        guard info.attributes.entryClass == .owned else { return }
        try reader.withValue(of: info.valueSequence) { (value, _) throws(TidemarkError) in
          try body(wanted[index].key, info, value)
        }
      }
    }
  }
}
