@testable import TidemarkEngine

/// An obviously right index: a dictionary, sorted whenever order is asked for.
struct IndexModel {
  struct Row {
    var sequence: UInt64
    var size: SizeClass
    var labels: Set<[UInt8]>
    /// Every label that the key carried since it was first written.
    var ever: Set<[UInt8]>
  }

  var rows: [[UInt8]: Row] = [:]

  mutating func upsert(
    _ key: [UInt8], sequence: UInt64, size: SizeClass, labels: Set<[UInt8]>
  ) {
    let carried = size.isDeleted ? [] : labels
    let ever = (rows[key]?.ever ?? []).union(carried)
    rows[key] = Row(sequence: sequence, size: size, labels: carried, ever: ever)
  }

  var liveKeys: Int { rows.values.count { !$0.size.isDeleted } }

  var labelCounts: [[UInt8]: Int] {
    var counts: [[UInt8]: Int] = [:]
    for row in rows.values { for label in row.labels { counts[label, default: 0] += 1 } }
    return counts
  }

  /// The keys of a range in the order of a walk that pass a test.
  func keys(
    from: KeyBound, upTo: KeyBound, descending: Bool, where passes: (Row) -> Bool
  ) -> [[UInt8]] {
    let lower = descending ? upTo : from
    let upper = descending ? from : upTo
    let sorted = rows.filter { passes($0.value) }.map(\.key)
      .filter { key in
        switch lower {
        case .start: true
        case .end: false
        case .including(let bound): !key.lexicographicallyPrecedes(bound)
        case .excluding(let bound): bound.lexicographicallyPrecedes(key)
        }
      }
      .filter { key in
        switch upper {
        case .start: false
        case .end: true
        case .including(let bound): !bound.lexicographicallyPrecedes(key)
        case .excluding(let bound): key.lexicographicallyPrecedes(bound)
        }
      }
      .sorted { $0.lexicographicallyPrecedes($1) }
    return descending ? sorted.reversed() : sorted
  }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers for the same seed.
struct IndexRandom: RandomNumberGenerator {
  var state: UInt64

  init(_ seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
