/// Hands out keys with values, page by page, or gathered where values lie far apart in the log.
extension EngineScan {
  /// After so many rows a scan fills free room of the hot cache: long scans are often repeated.
  private static let rowsBeforeFill = 512
  /// After so many rows a scan may read many rows ahead in the order of the log.
  private static let rowsBeforeGathering = 1_024

  /// Calls `body` with key and value of every row that is left. No lock is held during the call.
  /// - Parameters:
  ///   - values: whether to read values; without, `body` gets empty ones.
  ///   - body: returns whether to go on. Its spans are good for the call only.
  package func forEach(limit: Int?, values: Bool, _ body: Body) throws(TidemarkError) {
    var pages = PageSizes(limit: limit)
    var found = ScanValues(reader)
    while let size = pages.next() {
      // Asked before the index: the hot cache refuses values of keys that were written since.
      let epochs = pages.taken >= Self.rowsBeforeFill ? reader.hotCache.epochs() : []
      let page = try nextRows(limit: size)
      if page.isEmpty { return }
      pages.took(page.count)
      guard try handOut(page, values ? epochs : nil, &found, body) else { return }
      if pages.taken >= Self.rowsBeforeGathering, found.wastesDecoding {
        guard try forEachGathered(&pages, &found.rows, body) else { return }
      }
    }
  }

  package typealias Body =
    (_ key: RawSpan, _ value: RawSpan) throws(TidemarkError) -> Bool

  /// Hands a page's rows out.
  /// - Parameter epochs: the hot cache's, before the page; none fill nothing, nil reads no values.
  /// - Returns: what `body` has returned last.
  private func handOut(
    _ page: borrowing ScanPage, _ epochs: [UInt64]?, _ found: inout ScanValues, _ body: Body
  ) throws(TidemarkError) -> Bool {
    guard let epochs else {
      for position in 0..<page.count {
        guard try body(page.key(at: position), RawSpan()) else { return false }
      }
      return true
    }
    // The hot cache is of the newest values; those of a view of the past must not come into it.
    let fills = !epochs.isEmpty && page.isOfPresent
    found.beginPage()
    var goesOn = true
    for position in 0..<page.count {
      if let place = try found.place(of: position, in: page) {
        let value = found.value(at: place)
        if fills, case .log = place { fill(page, position, value, epochs) }
        goesOn = try body(page.key(at: position), value)
      } else {
        goesOn = try readAndHandOut(page, position, fills ? epochs : [], body)
      }
      if !goesOn { return false }
    }
    if fills { reader.shareCacheBytes() }
    return true
  }

  /// Hands out one row whose value `reader` reads alone, as for a touch (its put has the value).
  private func readAndHandOut(
    _ page: borrowing ScanPage, _ position: Int, _ epochs: [UInt64], _ body: Body
  ) throws(TidemarkError) -> Bool {
    let row = page[position]
    let key = page.key(at: position)
    var goesOn = true
    try reader.read(of: row.sequence, isTouch: row.isTouch) {
      (value, _) throws(TidemarkError) in
      if !epochs.isEmpty { fill(page, position, value, epochs) }
      goesOn = try body(key, value)
    }
    return goesOn
  }

  /// Hands out further rows, whose values are copied in the order of the log, many at a time.
  /// - Returns: whether there may be more rows; false also when `body` ends the scan.
  private func forEachGathered(
    _ pages: inout PageSizes, _ rowReader: inout RowReader, _ body: Body
  ) throws(TidemarkError) -> Bool {
    var values = GatheredValues(reader)
    while values.rowsTogether > 0 {
      let epochs = reader.hotCache.epochs()
      let (group, failure) = nextGroup(of: values.rowsTogether, &pages)
      values.read(group.flatMap { page in (0..<page.count).map { page[$0] } }, by: &rowReader)
      var number = 0
      for page in group {
        let kept = page.isOfPresent ? epochs : []
        for position in 0..<page.count {
          // The value is a copy, which must not be served once the store is closed or suspended.
          try reader.checkReadable()
          let key = page.key(at: position)
          let goesOn: Bool
          if let value = values.value(of: number) {
            if !kept.isEmpty { fill(page, position, value, kept) }
            goesOn = try body(key, value)
          } else {
            goesOn = try readAndHandOut(page, position, kept, body)
          }
          guard goesOn else { return false }
          number += 1
        }
      }
      if let failure { throw failure }
      if group.isEmpty { return false }
      reader.shareCacheBytes()
    }
    return true
  }

  /// The next pages, up to so many rows and 4 MiB of keys.
  /// - Returns: also the error that ended them, which is thrown after the rows that were found.
  private func nextGroup(
    of most: Int, _ pages: inout PageSizes
  ) -> (pages: [ScanPage], failure: TidemarkError?) {
    var group: [ScanPage] = []
    var (rows, bytes) = (0, 0)
    while rows < most, bytes < Self.keyBytesTogether, let size = pages.next() {
      do throws(TidemarkError) {
        let page = try nextRows(limit: size)
        if page.isEmpty { break }
        pages.took(page.count)
        rows += page.count
        bytes += page.keyBytes
        group.append(page)
      } catch { return (group, error) }
    }
    return (group, nil)
  }

  private func fill(
    _ page: borrowing ScanPage, _ position: Int, _ value: RawSpan, _ epochs: [UInt64]
  ) {
    reader.hotCache.fill(
      page.key(at: position), sequence: page[position].sequence, value: value,
      note: page.isCached(position) ? .unknown : nil, epochs: epochs)
  }
}

/// The sizes of a scan's pages: without a limit they begin small, since the caller may stop soon.
package struct PageSizes {
  private static let first = 32
  private static let most = 1024
  private var left: Int
  private var size: Int
  /// How many rows have been read.
  package private(set) var taken = 0

  package init(limit: Int?) {
    left = max(0, limit ?? .max)
    size = limit == nil ? Self.first : Self.most
  }

  /// The size of the next page; nil when there were enough rows.
  package mutating func next() -> Int? {
    guard left > 0 else { return nil }
    defer { size = min(size * 2, Self.most) }
    return min(size, left)
  }

  /// Counts the rows of a page, which may be fewer than `next` has asked for.
  package mutating func took(_ rows: Int) {
    left -= rows
    taken += rows
  }
}
