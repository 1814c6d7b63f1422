extension EngineScan {
  /// A scan that has come so far is likely to read what will be read again, so its values are
  /// kept while the hot cache has room; a shorter one does not pay for them.
  private static let rowsBeforeFill = 512

  /// Calls `body` with key and value of every row that is left.
  /// - Parameters:
  ///   - limit: most rows; nil for all.
  ///   - values: whether to read values; without, `body` gets empty ones.
  ///   - body: says whether to go on. Its spans are good for the call only.
  package func forEach(
    limit: Int?, values: Bool,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws(TidemarkError) -> Bool
  ) throws(TidemarkError) {
    var pages = PageSizes(limit: limit)
    var reader = ScanValues(engine)
    var goesOn = true
    while goesOn, let size = pages.next() {
      // Before the look-up: what is replaced meanwhile must not be kept.
      let epochs = pages.taken >= Self.rowsBeforeFill ? engine.hotCache.epochs() : []
      let page = try nextRows(limit: size)
      let fills = !epochs.isEmpty && page.isOfPresent
      if page.isEmpty { return }
      reader.beginPage()
      for position in 0..<page.count {
        if !values {
          goesOn = try body(page.key(at: position), RawSpan())
        } else if let place = try reader.place(of: position, in: page) {
          let value = reader.value(at: place)
          if fills, case .log = place {
            fill(page.key(at: position), page[position].sequence, value, epochs)
          }
          goesOn = try body(page.key(at: position), value)
        } else {
          let row = page[position]
          try engine.read(of: row.sequence, isTouch: row.isTouch) {
            (value, _) throws(TidemarkError) in
            if fills { fill(page.key(at: position), row.sequence, value, epochs) }
            goesOn = try body(page.key(at: position), value)
          }
        }
        if !goesOn { return }
      }
      pages.took(page.count)
      if fills { engine.shareCacheBytes() }
    }
  }

  private func fill(_ key: RawSpan, _ sequence: UInt64, _ value: RawSpan, _ epochs: [UInt64]) {
    engine.hotCache.fill(key, sequence: sequence, value: value, epochs: epochs)
  }
}

/// How many rows to read at a time: what is asked for, or ever more.
package struct PageSizes {
  private static let first = 32
  private static let most = 1024

  private var left: Int
  private var size: Int
  /// How many rows there were.
  package private(set) var taken = 0

  /// - Parameter limit: most rows in all; nil for no limit.
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

  package mutating func took(_ rows: Int) {
    left -= rows
    taken += rows
  }
}
