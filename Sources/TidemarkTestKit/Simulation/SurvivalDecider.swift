/// A sector with un-synced writes.
struct TouchedSector {
  var sector: Int
  /// The stamps of the writes, ascending; at least one.
  var stamps: [Int]
  /// The bytes within the sector that they touched, from the first to the last.
  var range: Range<Int>

  /// Takes in a later write to the same sector.
  mutating func add(_ later: TouchedSector) {
    stamps += later.stamps
    range =
      min(
        range.lowerBound, later.range.lowerBound)..<max(
        range.upperBound, later.range.upperBound)
  }
}

/// The fate of a sector: of the writes that touched it, in the order of their stamps, those
/// after `after` and up to `through` are there, and a part of those up to `tornThrough`.
struct SectorFate {
  var sector: Int
  var after = Int.min
  var through: Int
  var tornThrough = Int.min
  var tear: [Range<Int>] = []
}

/// Carries out a policy, one decision after the other, in an order that depends on the disk only.
struct SurvivalDecider {
  private let policy: Survival
  private let middle: Int
  private var generator: SeededGenerator
  private let keep: Double
  private let tear: Double
  /// How many sectors of the file are yet to be kept.
  private var sectorsBeforeCut = 0
  var counts = InjectionCounts()

  /// Creates one.
  /// - Parameter stamps: the stamps of all un-synced changes, ascending.
  init(_ policy: Survival, stamps: [Int]) {
    self.policy = policy
    middle = stamps.isEmpty ? 0 : stamps[(stamps.count - 1) / 2]
    switch policy {
    case .tearAll(let seed), .cutWrites(let seed), .random(let seed), .randomStale(let seed):
      generator = SeededGenerator(seed: seed)
    default: generator = SeededGenerator(seed: 0)
    }
    // Crashes that lose nearly everything and crashes that lose nearly nothing find other bugs
    // than those in between.
    keep = [0.05, 0.35, 0.65, 0.95][generator.int(below: 4)]
    tear = [0, 0.1, 0.5][generator.int(below: 3)]
  }

  var leavesStaleBlocks: Bool {
    if case .randomStale = policy { return true }
    return false
  }

  /// A number for choosing stale bytes.
  mutating func choice(below bound: Int) -> Int { generator.int(below: bound) }

  /// How many of a name's changes, from the oldest on, survive.
  mutating func name(_ stamps: [Int]) -> Int {
    let kept: Int
    switch policy {
    case .keepAll, .keepNames, .tearAll, .cutWrites: kept = stamps.count
    case .loseAll, .keepBytes: kept = 0
    case .keepOldest: kept = stamps.count { $0 <= middle }
    case .keepNewest: kept = stamps.contains { $0 > middle } ? stamps.count : 0
    case .random, .randomStale:
      kept = generator.chance(keep) ? stamps.count : generator.int(below: stamps.count)
    }
    counts.add(.nameKept, kept)
    counts.add(.nameLost, stamps.count - kept)
    return kept
  }

  /// How many changes of a file's length, from the oldest on, survive: file systems keep their
  /// order.
  mutating func lengths(_ stamps: [Int]) -> Int {
    guard !stamps.isEmpty else { return 0 }
    let kept: Int
    switch policy {
    case .keepAll, .keepNames, .tearAll, .cutWrites: kept = stamps.count
    case .loseAll, .keepBytes: kept = 0
    case .keepOldest: kept = stamps.count { $0 <= middle }
    case .keepNewest: kept = stamps.contains { $0 > middle } ? stamps.count : 0
    case .random, .randomStale:
      kept = generator.chance(keep) ? stamps.count : generator.int(below: stamps.count)
    }
    counts.add(.lengthKept, kept)
    counts.add(.lengthLost, stamps.count - kept)
    return kept
  }

  /// Begins with a file of which so many sectors were touched, which come in ascending order.
  mutating func beginFile(sectors: Int) {
    if case .cutWrites = policy { sectorsBeforeCut = generator.int(in: 0...sectors) }
  }

  /// The fate of a sector that writes touched.
  mutating func sector(_ touched: TouchedSector) -> SectorFate {
    let stamps = touched.stamps
    let newest = stamps[stamps.count - 1]
    var fate = SectorFate(sector: touched.sector, through: .min)
    switch policy {
    case .keepAll, .keepBytes: fate.through = newest
    case .loseAll, .keepNames: break
    case .keepOldest: fate.through = stamps.last { $0 <= middle } ?? .min
    case .keepNewest:
      if newest > middle {
        fate.after = middle
        fate.through = newest
      }
    case .tearAll: fate = torn(touched)
    case .cutWrites:
      if sectorsBeforeCut > 0 {
        sectorsBeforeCut -= 1
        fate.through = newest
      }
    case .random, .randomStale:
      if generator.chance(tear) {
        fate = torn(touched)
      } else if generator.chance(keep) {
        fate.through = newest
      } else {
        // Lost, or an earlier one of several writes reached the disk.
        let kept = generator.int(below: stamps.count)
        fate.through = kept == 0 ? .min : stamps[kept - 1]
      }
    }
    if !fate.tear.isEmpty {
      counts.add(.sectorTorn)
    } else {
      counts.add(fate.through == newest ? .sectorKept : .sectorLost)
    }
    return fate
  }

  /// Some of the newest write's bytes over an older state: the first ones, the last ones, or
  /// units of eight here and there.
  private mutating func torn(_ touched: TouchedSector) -> SectorFate {
    let stamps = touched.stamps
    let range = touched.range
    let old = generator.int(below: stamps.count)
    let cut = range.lowerBound + generator.int(in: 1...max(1, range.count - 1))
    let tear: [Range<Int>]
    switch generator.int(below: 3) {
    case 0: tear = [range.lowerBound..<min(cut, range.upperBound)]
    case 1: tear = [min(cut, range.upperBound)..<range.upperBound]
    default:
      let mask = generator.next()
      tear = (0..<64).filter { mask >> $0 & 1 == 1 }.map { ($0 * 8)..<($0 * 8 + 8) }
    }
    return SectorFate(
      sector: touched.sector, through: old == 0 ? .min : stamps[old - 1],
      tornThrough: stamps[stamps.count - 1],
      tear: tear)
  }
}
