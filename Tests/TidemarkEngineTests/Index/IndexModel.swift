@testable import TidemarkEngine

/// An obviously right index: a dictionary, sorted whenever order is asked for.
struct IndexModel {
  struct Version {
    var sequence: UInt64
    var size: SizeClass
    /// The labels of a key with this version: nothing if it is deleted.
    var labels: Set<[UInt8]>
  }

  struct Row {
    var versions: [Version]
    /// Labels that the index must still know as carried once.
    var remembered: Set<[UInt8]>

    var newest: Version { versions[versions.count - 1] }

    /// Every label that the key ever carried.
    var ever: Set<[UInt8]> { versions.reduce(into: []) { $0.formUnion($1.labels) } }
  }

  var rows: [[UInt8]: Row] = [:]

  mutating func upsert(
    _ key: [UInt8], sequence: UInt64, size: SizeClass, labels: Set<[UInt8]>
  ) {
    let version = Version(sequence: sequence, size: size, labels: size.isDeleted ? [] : labels)
    var row = rows[key] ?? Row(versions: [], remembered: [])
    row.versions.append(version)
    row.remembered.formUnion(version.labels)
    rows[key] = row
  }

  /// A merge forgets some things: tombstones, and labels carried once.
  mutating func merge(frozenAt: UInt64, dropThrough: UInt64, keepFormer: Bool) {
    for (key, row) in rows {
      guard let merged = row.versions.last(where: { $0.sequence <= frozenAt }) else { continue }
      let later = row.versions.filter { $0.sequence > frozenAt }
      let laterLabels = later.reduce(into: Set<[UInt8]>()) { $0.formUnion($1.labels) }
      if merged.size.isDeleted, merged.sequence <= dropThrough {
        rows[key] = later.isEmpty ? nil : Row(versions: later, remembered: laterLabels)
      } else if !keepFormer {
        rows[key]?.remembered = laterLabels.union(merged.labels)
      }
    }
  }

  var liveKeys: Int { rows.values.count { !$0.newest.size.isDeleted } }

  var labelCounts: [[UInt8]: Int] {
    var counts: [[UInt8]: Int] = [:]
    for row in rows.values { for label in row.newest.labels { counts[label, default: 0] += 1 } }
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

extension LabelQuery {
  func matches(_ version: IndexModel.Version) -> Bool {
    !version.size.isDeleted && all.allSatisfy(version.labels.contains)
      && (any.isEmpty || any.contains(where: version.labels.contains))
      && !not.contains(where: version.labels.contains)
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
