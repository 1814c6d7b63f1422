/// The steps that a made-up script is rich in.
///
/// Every kind of step can occur in every profile, since bugs live in combinations that nobody
/// thought of; a profile only makes some more likely. Cached values are in one profile alone, since
/// less can be said of the past of their keys.
public struct ScriptProfile: Sendable, Hashable {
  /// The look of keys.
  public enum Keys: String, Sendable, Hashable, CaseIterable {
    /// A few letters.
    case short
    /// One or two bytes, the extreme ones among them.
    case tiny
    /// Long common beginnings, keys that begin with other keys.
    case sharedPrefixes
    /// Letters of many scripts in several spellings, and bytes that are no UTF-8.
    case nonASCII
    /// Up to the longest that a store takes.
    case huge
    /// All of these.
    case mixed
  }

  /// How long values are.
  public enum Values: String, Sendable, Hashable, CaseIterable {
    /// At most a few bytes, often none.
    case tiny
    /// A few hundred bytes.
    case records
    /// About the sizes at which a store changes its ways: blocks, frames.
    case borders
    /// Many blocks.
    case large
    /// All of these.
    case mixed
  }

  /// A name for reports.
  public var name: String
  /// The look of keys.
  public var keys: Keys
  /// How many keys there are to begin with; fewer are written more often.
  public var keyCount: Int
  /// How long values are.
  public var values: Values
  /// No value is longer than this.
  public var maximumValueBytes: Int
  /// How many labels there are.
  public var labelCount: Int
  /// How many labels an entry has at most, most of the time.
  public var labelsPerEntry: Int
  /// How many writes a batch has at most.
  public var batchCount: Int
  /// How likely each kind of step is, relative to the others.
  public var weights: [ScriptStep.Kind: Int]
  /// How much dearer than others these scripts are to run: campaigns make them shorter.
  public var cost: Int

  /// Creates a profile.
  public init(
    _ name: String, keys: Keys = .mixed, keyCount: Int = 30, values: Values = .mixed,
    maximumValueBytes: Int = 300_000, labelCount: Int = 8, labelsPerEntry: Int = 3,
    batchCount: Int = 12, cost: Int = 1, changing weights: [ScriptStep.Kind: Int] = [:]
  ) {
    self.name = name
    self.keys = keys
    self.keyCount = keyCount
    self.values = values
    self.maximumValueBytes = maximumValueBytes
    self.labelCount = labelCount
    self.labelsPerEntry = labelsPerEntry
    self.batchCount = batchCount
    self.cost = cost
    self.weights = Self.usual.merging(weights) { $1 }
  }

  private static let usual: [ScriptStep.Kind: Int] = [
    .put: 300, .cache: 0, .evict: 0, .delete: 80, .touch: 30, .batch: 80, .compareAndPut: 30,
    .undo: 6, .clear: 2,
    .flush: 30, .snapshot: 12, .compact: 8, .compactDroppingHistory: 4, .loseImages: 3,
    .closeAndReopen: 12, .kill: 0, .powerCut: 0, .durability: 6, .advanceClock: 12, .jumpClock: 3,
    .get: 60, .scan: 60, .view: 40, .holdView: 6, .releaseView: 8, .history: 25,
    .difference: 15, .entries: 15, .verify: 4,
  ]

  /// A bit of everything.
  public static let mixed = ScriptProfile("mixed")
  /// More deletes than puts: tombstones, emptied segments.
  public static let deleteHeavy = ScriptProfile(
    "delete-heavy", keyCount: 12, values: .tiny,
    changing: [.put: 250, .delete: 300, .clear: 8, .compact: 25, .compactDroppingHistory: 15])
  /// Few keys, written over and over: long histories.
  public static let overwriteHeavy = ScriptProfile(
    "overwrite-heavy", keys: .short, keyCount: 3, values: .records,
    changing: [.history: 60, .view: 80, .delete: 20])
  /// Keys with long common beginnings, scanned by prefix.
  public static let sharedPrefixes = ScriptProfile(
    "shared-prefixes", keys: .sharedPrefixes, keyCount: 120, values: .tiny,
    changing: [.scan: 150, .snapshot: 30])
  /// Keys in many scripts and spellings.
  public static let nonASCII = ScriptProfile("non-ascii", keys: .nonASCII, values: .tiny)
  /// One and two bytes, empty values.
  public static let tiny = ScriptProfile(
    "tiny", keys: .tiny, keyCount: 300, values: .tiny, batchCount: 60)
  /// The longest keys, values of many blocks.
  public static let huge = ScriptProfile(
    "huge", keys: .huge, keyCount: 6, values: .large, maximumValueBytes: 3_000_000,
    batchCount: 4, cost: 10, changing: [.batch: 250])
  /// Values at the sizes of blocks and frames.
  public static let borders = ScriptProfile("borders", keys: .short, values: .borders, cost: 2)
  /// Many labels on many entries, asked for in all ways.
  public static let manyLabels = ScriptProfile(
    "many-labels", keys: .short, values: .tiny, labelCount: 80, labelsPerEntry: 20,
    changing: [.scan: 200, .view: 100])
  /// Images, compactions and reopenings all the time, with views held meanwhile.
  public static let maintenance = ScriptProfile(
    "maintenance", values: .records,
    changing: [
      .snapshot: 60, .compact: 60, .compactDroppingHistory: 30, .loseImages: 25,
      .closeAndReopen: 60, .holdView: 40, .releaseView: 40, .flush: 60,
    ])
  /// Everything deleted and compacted away, again and again: segments of which nothing stays.
  public static let emptied = ScriptProfile(
    "emptied", keys: .short, keyCount: 4, values: .tiny, batchCount: 3,
    changing: [
      .put: 120, .delete: 80, .clear: 60, .snapshot: 30, .compactDroppingHistory: 60,
      .closeAndReopen: 60, .holdView: 10,
    ])

  /// Cached values beside those that the user wrote, evicted and compacted away.
  public static let cached = ScriptProfile(
    "cached", keys: .short, keyCount: 8, values: .records,
    changing: [
      .put: 60, .cache: 300, .evict: 120, .delete: 30, .touch: 80, .snapshot: 40, .compact: 60,
      .loseImages: 20, .closeAndReopen: 30, .holdView: 12, .history: 60,
    ])

  /// All of them.
  public static let all: [ScriptProfile] = [
    .mixed, .deleteHeavy, .overwriteHeavy, .sharedPrefixes, .nonASCII, .tiny, .huge, .borders,
    .manyLabels, .maintenance, .emptied, .cached,
  ]

  /// The same with kills and power cuts in the script itself.
  public func withCrashes(kills: Int = 15, powerCuts: Int = 15) -> ScriptProfile {
    var profile = self
    profile.name += "+crashes"
    profile.weights[.kill] = kills
    profile.weights[.powerCut] = powerCuts
    return profile
  }

  /// The same without some kinds of steps, for what cannot do them.
  public func without(_ kinds: Set<ScriptStep.Kind>) -> ScriptProfile {
    var profile = self
    for kind in kinds { profile.weights[kind] = 0 }
    return profile
  }
}
