package import TidemarkEngine

/// The fingerprints of all keys in some parts of a digest, sorted by the keys' hashes, so that sums
/// over any part within them need no second scan of the store. A part is the keys whose hashes
/// begin with a path; it is divided in 256 by the next byte.
///
/// Memory is bounded: where the parts have more keys than ``rowLimit``, the last parts are left
/// out; of a single part with more, only the sums of its 256 parts are kept. The rest needs another
/// scan.
package struct DigestTable: Sendable {
  package struct Row: Sendable, Hashable {
    package var hash: UInt64
    package var fingerprint: ContentFingerprint
    /// The offset of the entry that gave the key its state.
    package var offset: UInt64

    package init(hash: UInt64, fingerprint: ContentFingerprint, offset: UInt64) {
      self.hash = hash
      self.fingerprint = fingerprint
      self.offset = offset
    }
  }

  /// Most rows in memory, 40 bytes each.
  package static let rowLimit = 1 << 20
  /// A part with this many keys, or fewer, is answered with its keys, not with sums. A key takes
  /// three times the bytes of a sum and a read of the log on both sides, but saves a round trip.
  package static let keysPerPart = 16
  /// Longest path: all bytes of a hash.
  package static let pathBytes = 8

  /// The paths of the parts, sorted, none within another.
  package private(set) var paths: [[UInt8]]
  /// The hashes of each part.
  package private(set) var ranges: [ClosedRange<UInt64>]
  private let limit: Int
  private var rows: [Row] = []
  /// The sums of the 256 parts of the first part, in case its rows cannot be kept.
  private var sums: [DigestSum]
  /// Whether the rows are kept; otherwise there are only the sums of the first part.
  package private(set) var isComplete = true

  /// - Parameters:
  ///   - paths: at least one; in byte order, and none within another.
  ///   - limit: most rows in memory.
  package init(paths: [[UInt8]], limit: Int = DigestTable.rowLimit) {
    self.paths = paths.map { Array($0.prefix(Self.pathBytes)) }
    ranges = paths.map(Self.range(of:))
    self.limit = limit
    sums = Array(repeating: DigestSum(), count: 256)
  }

  /// How many rows are in memory.
  package var rowCount: Int { rows.count }

  /// Whether a key with a hash is in one of the parts.
  package func covers(hash: UInt64) -> Bool {
    let index = ranges.partitioningIndex { $0.upperBound >= hash }
    return index < ranges.count && ranges[index].contains(hash)
  }

  /// Adds a key that ``covers(hash:)``.
  package mutating func add(_ row: Row) {
    if ranges[0].contains(row.hash) {
      sums[Self.next(row.hash, at: paths[0].count)].add(row.fingerprint)
    }
    guard isComplete else { return }
    rows.append(row)
    while rows.count > limit, isComplete { leaveOut() }
  }

  /// Adds a key and what it holds, if it is in one of the parts.
  /// - Parameter labels: in byte order, each once.
  package mutating func add(
    key: [UInt8], _ value: RawSpan, labels: [[UInt8]], attachment: AttachmentID?, offset: UInt64
  ) {
    let hash = ContentFingerprint.keyHash(key.rawSpan)
    guard covers(hash: hash) else { return }
    let fingerprint = ContentFingerprint(
      key: key.rawSpan, value: value, labels: labels, attachment: attachment)
    add(Row(hash: hash, fingerprint: fingerprint, offset: offset))
  }

  /// Adds the keys of a store with their values, as far as the table covers them.
  /// - Parameter wants: whether a key is to be added, by its labels.
  package mutating func add(
    _ view: EngineView, wants: (_ key: [UInt8], _ labels: [[UInt8]]) -> Bool
  ) throws(TidemarkError) {
    try view.scanOwned(
      wants: { covers(hash: ContentFingerprint.keyHash($0.rawSpan)) }
    ) { (key, info, value) throws(TidemarkError) in
      guard wants(key, info.labels) else { return }
      add(
        key: key, value, labels: info.labels, attachment: info.attributes.attachment,
        offset: info.valueSequence)
    }
  }

  /// Drops the second half of the parts with their rows, or all rows of a single part.
  private mutating func leaveOut() {
    guard paths.count > 1 else {
      rows = []
      isComplete = false
      return
    }
    paths.removeLast(paths.count / 2)
    ranges.removeLast(ranges.count - paths.count)
    let end = ranges[ranges.count - 1].upperBound
    rows.removeAll { $0.hash > end }
  }

  /// Sorts the rows once all keys are added: in buckets first, which hashes fill evenly.
  package mutating func finish() {
    var buckets = Array(repeating: [Row](), count: rows.count / 256 + 1)
    for row in rows {
      buckets[Int(row.hash.multipliedFullWidth(by: UInt64(buckets.count)).high)].append(row)
    }
    rows = buckets.flatMap { $0.sorted { ($0.hash, $0.offset) < ($1.hash, $1.offset) } }
  }

  /// Whether the table can answer for a part.
  package func answers(_ path: [UInt8]) -> Bool {
    guard isComplete else { return path == paths[0] }
    let range = Self.range(of: path)
    let index = ranges.partitioningIndex { $0.upperBound >= range.upperBound }
    return index < ranges.count && path.starts(with: paths[index])
  }

  /// The answer about a part; only where ``answers(_:)`` holds.
  /// - Parameter find: the keys and positions of rows, in their order.
  package func part<E: Error>(
    _ path: [UInt8], find: (ArraySlice<Row>) throws(E) -> [(key: [UInt8], position: FeedPosition)]
  ) throws(E) -> DigestPart {
    let found = isComplete ? rows(of: path) : []
    guard isComplete, found.count <= Self.keysPerPart || path.count >= Self.pathBytes else {
      let sums = sums(of: path)
      return DigestPart(total: sums.reduce(DigestSum(), +), content: .sums(sums))
    }
    var total = DigestSum()
    for row in found { total.add(row.fingerprint) }
    let keys = zip(found, try find(found)).map { row, state in
      DigestKey(key: state.key, position: state.position, fingerprint: row.fingerprint.bits)
    }
    return DigestPart(total: total, content: .keys(keys))
  }

  /// The sums of the 256 parts of a part; only where ``answers(_:)`` holds.
  package func sums(of path: [UInt8]) -> [DigestSum] {
    guard isComplete else { return sums }
    var sums = Array(repeating: DigestSum(), count: 256)
    for row in rows(of: path) { sums[Self.next(row.hash, at: path.count)].add(row.fingerprint) }
    return sums
  }

  /// The rows of a part, sorted by hash; only of a complete table.
  package func rows(of path: [UInt8]) -> ArraySlice<Row> {
    let range = Self.range(of: path)
    let start = rows.partitioningIndex { $0.hash >= range.lowerBound }
    let end = rows.partitioningIndex { $0.hash > range.upperBound }
    return rows[start..<end]
  }

  /// Whether a key with a hash is in a part.
  package static func part(_ path: [UInt8], has hash: UInt64) -> Bool {
    range(of: path).contains(hash)
  }

  /// The hashes of a part's keys.
  private static func range(of path: [UInt8]) -> ClosedRange<UInt64> {
    var low: UInt64 = 0
    for (index, byte) in path.prefix(pathBytes).enumerated() {
      low |= UInt64(byte) << UInt64(56 - 8 * index)
    }
    let free = 64 - 8 * min(path.count, pathBytes)
    return low...(free >= 64 ? .max : low | ((1 << UInt64(free)) - 1))
  }

  /// The byte of a hash after its first `depth` bytes.
  private static func next(_ hash: UInt64, at depth: Int) -> Int {
    depth >= pathBytes ? 0 : Int(hash >> UInt64(56 - 8 * depth) & 0xff)
  }
}

extension DigestSum {
  /// Adds one key.
  package mutating func add(_ fingerprint: ContentFingerprint) {
    self = self + DigestSum(keys: 1, sum: fingerprint.bits)
  }
}
