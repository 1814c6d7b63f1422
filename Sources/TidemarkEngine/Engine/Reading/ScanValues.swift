// SAFETY: a value lies in a buffer or block that is kept here, and changes only in calls that
// mutate it.

/// The values of a scan's rows: from the hot cache those that it has, which may lie all over the
/// log, and the others from there.
struct ScanValues {
  /// So many rows are looked for in the hot cache together.
  private static let windowMost = 32

  /// Where the value of a row lies.
  enum Place {
    case cached(Range<Int>)
    case log(RowReader.Place)
  }

  private let reader: Reader
  private let cache: HotCache
  var rows: RowReader
  /// The row behind the window.
  private var end = 0
  /// Whether the hot cache is asked: it had something of the window before, if that was of the
  /// same page.
  private var looksInCache = false
  /// Values from the hot cache, each from the beginning of a word.
  private var bytes: [UInt8] = []
  /// Where in `bytes` the value of each row of the window lies; nil for what is in the log.
  private var cached: [Range<Int>?] = []
  /// The rows that are in the log; how many were read of them, and prepared.
  private var logged: [Int] = []
  private var read = 0
  private var prepared = 0
  private var hashes: [UInt64] = []
  /// Bytes of the values that the hot cache had.
  private var cachedBytes = 0

  init(_ reader: Reader) {
    self.reader = reader
    cache = reader.hotCache
    rows = RowReader(reader)
  }

  /// Whether blocks are decoded mostly for what no row wants of them.
  var wastesDecoding: Bool {
    GatheredValues.pays(
      decoded: rows.decodedBytes, handedOut: rows.wantedBytes + cachedBytes)
  }

  /// Forgets the rows of the page before.
  mutating func beginPage() {
    end = 0
    looksInCache = cache.isOn
  }

  /// Where the value of a row lies: of each of a page, in order.
  /// - Returns: nil for what ``Reader/read(of:isTouch:_:)`` is to read.
  /// - Throws: `closed`, `suspended`.
  @inline(__always)
  mutating func place(
    of position: Int, in page: borrowing ScanPage
  ) throws(TidemarkError) -> Place? {
    if position == end { beginWindow(page) }
    if let range = cached[cached.count - (end - position)] {
      // A copy would be served beyond the end of the store's being open.
      try reader.checkReadable()
      return .cached(range)
    }
    if read == prepared { prepareLogged(page) }
    read += 1
    return try rows.next(page[position].sequence).map { .log($0) }
  }

  /// The bytes at a place, until the next row's is asked for.
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
    read = 0
    prepared = 0
    for position in first..<end where cached[position - first] == nil { logged.append(position) }
    looksInCache = looksInCache && logged.count < end - first
  }

  /// The processor waits for the memory of all rows together.
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
    let (logged, read) = (logged, read)
    prepared += rows.prepare(logged.count - read) { page[logged[read + $0]] }
  }
}
