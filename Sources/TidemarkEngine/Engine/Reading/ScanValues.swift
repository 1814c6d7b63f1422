// SAFETY: a value lies in a buffer or block that is kept here, and changes only in calls that
// mutate it.

/// The values of a scan's rows, page by page in order: from the hot cache, or else from the log.
struct ScanValues {
  /// How many rows ("a window") are looked for in the hot cache together.
  private static let windowMost = 32
  /// Rows are gathered where less than one in so many decoded bytes is handed out.
  private static let wastedShare = 4

  /// Where the value of a row lies: in `bytes`, or in a block that `rows` keeps.
  enum Place {
    case cached(Range<Int>)
    case log(RowReader.Place)
  }

  private let reader: Reader
  private let cache: HotCache
  var rows: RowReader
  /// The first row after the window.
  private var end = 0
  /// Whether the hot cache is asked; not for the rest of a page once it had nothing of a window.
  private var looksInCache = false
  /// Copies of values from the hot cache, each at a multiple of 8 bytes.
  private var bytes: [UInt8] = []
  /// Where in `bytes` the value of each row of the window lies; nil if it is not cached.
  private var cached: [Range<Int>?] = []
  /// The rows of the window that are read from the log; how many were read, and prepared, so far.
  private var logged: [Int] = []
  private var readCount = 0
  private var preparedCount = 0
  private var hashes: [UInt64] = []
  /// Bytes of the values that the hot cache had.
  private var cachedBytes = 0

  init(_ reader: Reader) {
    self.reader = reader
    cache = reader.hotCache
    rows = RowReader(reader)
  }

  /// Whether most of what is decoded is of no row, so that ``GatheredValues`` pays.
  var wastesDecoding: Bool {
    rows.decodedBytes > Self.wastedShare * (rows.wantedBytes + cachedBytes)
  }

  /// Forgets the rows of the page before.
  mutating func beginPage() {
    end = 0
    looksInCache = cache.isOn
  }

  /// Where the value of a row lies. To be called for every row of a page, in order.
  /// - Returns: nil if ``Reader/read(of:isTouch:_:)`` has to read the value.
  /// - Throws: `closed`, `suspended`.
  @inline(__always)
  mutating func place(
    of position: Int, in page: borrowing ScanPage
  ) throws(TidemarkError) -> Place? {
    if position == end { beginWindow(page) }
    if let range = cached[cached.count - (end - position)] {
      // The value is a copy, which must not be served once the store is closed or suspended.
      try reader.checkReadable()
      return .cached(range)
    }
    if readCount == preparedCount { prepareLogged(page) }
    readCount += 1
    return try rows.next(page[position].sequence).map { .log($0) }
  }

  /// The bytes at a place; good until `place` is called again.
  @_lifetime(borrow self)
  @inline(__always)
  func value(at place: Place) -> RawSpan {
    switch place {
    case .cached(let range): bytes.rawSpan.extracting(range)
    case .log(let place): rows.value(at: place)
    }
  }

  private mutating func beginWindow(_ page: borrowing ScanPage) {
    let first = end
    end = min(page.count, first + Self.windowMost)
    cached.removeAll(keepingCapacity: true)
    if looksInCache {
      lookInCache(page, first)
    } else {
      cached.append(contentsOf: repeatElement(nil, count: end - first))
    }
    logged.removeAll(keepingCapacity: true)
    (readCount, preparedCount) = (0, 0)
    for position in first..<end where cached[position - first] == nil { logged.append(position) }
    looksInCache = looksInCache && logged.count < end - first
  }

  /// Copies what the hot cache has of the window, if it is of the row's very entry. All rows are
  /// prefetched first, so that waits for memory overlap.
  private mutating func lookInCache(_ page: borrowing ScanPage, _ first: Int) {
    let cache = cache
    hashes.removeAll(keepingCapacity: true)
    for position in first..<end {
      let hash = KeyHash.hash(page.key(at: position), seed: cache.seed)
      hashes.append(hash)
      cache.prefetchSlot(hash)
    }
    for hash in hashes { cache.prefetchEntry(hash) }
    var length = 0
    for position in first..<end {
      let hash = hashes[position - first]
      let found = cache.copy(
        page.key(at: position), hash: hash, ofEntry: page[position].sequence, into: &bytes,
        at: length)
      cached.append(found.map { length..<(length + $0) })
      if let found { length += (found + 7) & ~7 }
    }
    cachedBytes += length
  }

  private mutating func prepareLogged(_ page: borrowing ScanPage) {
    let (logged, readCount) = (logged, readCount)
    preparedCount += rows.prepare(logged.count - readCount) { page[logged[readCount + $0]] }
  }
}
