/// The fingerprints of all keys of a part, in the order of the hashes of their keys: answers for
/// every part within it without looking at the keys again.
///
/// Memory is bounded: of a part with more keys than ``rowLimit`` only the sums of its 256 parts
/// are kept, and a smaller part has to be gathered anew.
package struct DigestTable: Sendable {
  package struct Row: Sendable, Hashable {
    package var hash: UInt64
    package var fingerprint: ContentFingerprint
    /// Where the key's state stands.
    package var offset: UInt64
  }

  /// What a part consists of.
  package enum Part: Sendable {
    case sums([DigestSum])
    case rows(ArraySlice<Row>)
  }

  /// Most keys that are kept, 40 bytes each.
  package static let rowLimit = 1 << 20
  /// A part of so many keys, or fewer, is told key by key.
  package static let keysPerPart = 256
  /// Longest path: all bytes of a hash.
  package static let pathBytes = 8

  /// The part: the first bytes of the hashes of its keys.
  package let path: [UInt8]
  private let limit: Int
  private var rows: [Row] = []
  private var sums: [DigestSum]
  /// Whether all rows are kept, not only their sums.
  package private(set) var isComplete = true

  /// - Parameter limit: most keys that are kept.
  package init(path: [UInt8], limit: Int = DigestTable.rowLimit) {
    self.path = Array(path.prefix(Self.pathBytes))
    self.limit = limit
    sums = Array(repeating: DigestSum(), count: 256)
  }

  /// How many rows are in memory.
  package var rowCount: Int { rows.count }

  /// Whether a key with a hash lies within.
  package func covers(hash: UInt64) -> Bool { Self.range(of: path).contains(hash) }

  /// Adds a key, which must lie within.
  package mutating func add(_ row: Row) {
    sums[Self.next(row.hash, at: path.count)].add(row.fingerprint)
    guard isComplete else { return }
    rows.append(row)
    if rows.count > limit {
      rows = []
      isComplete = false
    }
  }

  /// Puts everything in order once all keys are added.
  package mutating func finish() {
    rows.sort { ($0.hash, $0.offset) < ($1.hash, $1.offset) }
  }

  /// Whether the table can tell of a part.
  package func answers(_ path: [UInt8]) -> Bool {
    isComplete ? path.starts(with: self.path) : path == self.path
  }

  /// A part and its sum; only of what the table can tell of.
  package func part(_ path: [UInt8]) -> (total: DigestSum, part: Part) {
    guard isComplete else {
      return (sums.reduce(DigestSum(), +), .sums(sums))
    }
    let found = rows(of: path)
    if found.count <= Self.keysPerPart || path.count >= Self.pathBytes {
      var total = DigestSum()
      for row in found { total.add(row.fingerprint) }
      return (total, .rows(found))
    }
    let sums = sums(of: path)
    return (sums.reduce(DigestSum(), +), .sums(sums))
  }

  /// The sums of the 256 parts of a part; only of what the table can tell of.
  package func sums(of path: [UInt8]) -> [DigestSum] {
    guard isComplete else { return sums }
    var sums = Array(repeating: DigestSum(), count: 256)
    for row in rows(of: path) { sums[Self.next(row.hash, at: path.count)].add(row.fingerprint) }
    return sums
  }

  /// The keys of a part, by the hashes of their keys; only of a complete table.
  package func rows(of path: [UInt8]) -> ArraySlice<Row> {
    let range = Self.range(of: path)
    let start = rows.partitioningIndex { $0.hash >= range.lowerBound }
    let end = rows.partitioningIndex { $0.hash > range.upperBound }
    return rows[start..<end]
  }

  /// The hashes of the keys of a part.
  private static func range(of path: [UInt8]) -> ClosedRange<UInt64> {
    var low: UInt64 = 0
    for (index, byte) in path.prefix(pathBytes).enumerated() {
      low |= UInt64(byte) << UInt64(56 - 8 * index)
    }
    let free = 64 - 8 * min(path.count, pathBytes)
    return low...(free >= 64 ? .max : low | ((1 << UInt64(free)) - 1))
  }

  /// The byte of a hash behind so many others.
  private static func next(_ hash: UInt64, at depth: Int) -> Int {
    depth >= pathBytes ? 0 : Int(hash >> UInt64(56 - 8 * depth) & 0xff)
  }
}

extension DigestSum {
  /// Adds one key.
  mutating func add(_ fingerprint: ContentFingerprint) {
    self = self + DigestSum(keys: 1, low: fingerprint.low, high: fingerprint.high)
  }
}

extension [DigestTable.Row] {
  /// The first index from which on a condition holds, in an array that is in its order.
  fileprivate func partitioningIndex(_ holds: (Element) -> Bool) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if holds(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
