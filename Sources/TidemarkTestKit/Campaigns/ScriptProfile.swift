/// Decides which steps, keys and values a made-up ``Script`` has often.
///
/// Every kind of step can occur in every profile, since bugs live in unexpected combinations; a
/// profile only makes some steps more frequent. Only one profile has cached values, since a test
/// can say less about the past of their keys.
public struct ScriptProfile: Sendable, Hashable {
  /// What the keys of a made-up script look like.
  public enum Keys: String, Sendable, Hashable, CaseIterable {
    /// Keys of a few letters.
    case short
    /// Keys of one or two bytes, the smallest and largest bytes among them.
    case tiny
    /// Keys with long common prefixes, and keys that are prefixes of other keys.
    case sharedPrefixes
    /// Keys with letters of many scripts in several spellings, and with bytes that are not UTF-8.
    case nonASCII
    /// Keys of any length up to the longest that a store accepts.
    case huge
    /// Keys of all the other sorts.
    case mixed
  }

  /// How long the values of a made-up script are.
  public enum Values: String, Sendable, Hashable, CaseIterable {
    /// Values of at most a few bytes, often empty.
    case tiny
    /// Values of a few hundred bytes.
    case records
    /// Values near the sizes of blocks and frames, at which a store changes its methods.
    case borders
    /// Values of many blocks.
    case large
    /// Values of all the other lengths.
    case mixed
  }

  /// The name of the profile, for reports.
  public var name: String
  /// What the keys look like.
  public var keys: Keys
  /// How many different keys the script begins with. With fewer keys, each is written more often.
  public var keyCount: Int
  /// How long the values are.
  public var values: Values
  /// The longest value in bytes; the default is 300,000.
  public var maximumValueBytes: Int
  /// How many different labels the script uses.
  public var labelCount: Int
  /// The most labels of most entries. A few entries have more.
  public var labelsPerEntry: Int
  /// The most writes of one batch.
  public var batchCount: Int
  /// How likely each kind of step is, relative to the other kinds.
  public var weights: [ScriptStep.Kind: Int]
  /// How many times longer a script of this profile takes than others. Campaigns make such scripts
  /// shorter.
  public var cost: Int

  /// Creates a profile for made-up scripts.
  /// - Parameters:
  ///   - name: the name, for reports.
  ///   - keys: what the keys look like.
  ///   - keyCount: how many different keys there are at first.
  ///   - values: how long the values are.
  ///   - maximumValueBytes: the longest value in bytes.
  ///   - labelCount: how many different labels there are.
  ///   - labelsPerEntry: the most labels of most entries.
  ///   - batchCount: the most writes of one batch.
  ///   - cost: how many times longer such a script takes than others.
  ///   - weights: replaces the likelihood of some kinds of steps.
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
    .flush: 30, .snapshot: 12, .compact: 8, .compactDroppingHistory: 4, .loseRuns: 3,
    .closeAndReopen: 12, .kill: 0, .powerCut: 0, .durability: 6, .advanceClock: 12, .jumpClock: 3,
    .get: 60, .scan: 60, .view: 40, .holdView: 6, .releaseView: 8, .history: 25,
    .difference: 15, .entries: 15, .verify: 4,
  ]

  /// A profile with some of every kind of step, key and value.
  public static let mixed = ScriptProfile("mixed")
  /// A profile with more deletes than puts, which tests tombstones and emptied segments.
  public static let deleteHeavy = ScriptProfile(
    "delete-heavy", keyCount: 12, values: .tiny,
    changing: [.put: 250, .delete: 300, .clear: 8, .compact: 25, .compactDroppingHistory: 15])
  /// A profile that overwrites few keys again and again, which tests long histories.
  public static let overwriteHeavy = ScriptProfile(
    "overwrite-heavy", keys: .short, keyCount: 3, values: .records,
    changing: [.history: 60, .view: 80, .delete: 20])
  /// A profile whose keys have long common prefixes, and whose scans ask for prefixes.
  public static let sharedPrefixes = ScriptProfile(
    "shared-prefixes", keys: .sharedPrefixes, keyCount: 120, values: .tiny,
    changing: [.scan: 150, .snapshot: 30])
  /// A profile with keys in many scripts and spellings.
  public static let nonASCII = ScriptProfile("non-ascii", keys: .nonASCII, values: .tiny)
  /// A profile with keys of one or two bytes and empty values.
  public static let tiny = ScriptProfile(
    "tiny", keys: .tiny, keyCount: 300, values: .tiny, batchCount: 60)
  /// A profile with the longest keys, and values of many blocks.
  public static let huge = ScriptProfile(
    "huge", keys: .huge, keyCount: 6, values: .large, maximumValueBytes: 3_000_000,
    batchCount: 4, cost: 10, changing: [.batch: 250])
  /// A profile with values near the sizes of blocks and frames.
  public static let borders = ScriptProfile("borders", keys: .short, values: .borders, cost: 2)
  /// A profile with many labels on many entries, and queries by label.
  public static let manyLabels = ScriptProfile(
    "many-labels", keys: .short, values: .tiny, labelCount: 80, labelsPerEntry: 20,
    changing: [.scan: 200, .view: 100])
  /// A profile with frequent sorted runs, compactions and reopenings while views are open.
  public static let maintenance = ScriptProfile(
    "maintenance", values: .records,
    changing: [
      .snapshot: 60, .compact: 60, .compactDroppingHistory: 30, .loseRuns: 25,
      .closeAndReopen: 60, .holdView: 40, .releaseView: 40, .flush: 60,
    ])
  /// A profile that deletes and compacts everything again and again, which tests segments without
  /// live entries.
  public static let emptied = ScriptProfile(
    "emptied", keys: .short, keyCount: 4, values: .tiny, batchCount: 3,
    changing: [
      .put: 120, .delete: 80, .clear: 60, .snapshot: 30, .compactDroppingHistory: 60,
      .closeAndReopen: 60, .holdView: 10,
    ])

  /// A profile with cached values beside ordinary ones, with evictions and compactions.
  public static let cached = ScriptProfile(
    "cached", keys: .short, keyCount: 8, values: .records,
    changing: [
      .put: 60, .cache: 300, .evict: 120, .delete: 30, .touch: 80, .snapshot: 40, .compact: 60,
      .loseRuns: 20, .closeAndReopen: 30, .holdView: 12, .history: 60,
    ])

  /// All profiles, from which a seed picks one.
  public static let all: [ScriptProfile] = [
    .mixed, .deleteHeavy, .overwriteHeavy, .sharedPrefixes, .nonASCII, .tiny, .huge, .borders,
    .manyLabels, .maintenance, .emptied, .cached,
  ]

  /// Returns the same profile with kills and power cuts as steps of the script.
  /// - Parameters:
  ///   - kills: how likely a kill is, relative to other steps.
  ///   - powerCuts: how likely a power cut is, relative to other steps.
  public func withCrashes(kills: Int = 15, powerCuts: Int = 15) -> ScriptProfile {
    var profile = self
    profile.name += "+crashes"
    profile.weights[.kill] = kills
    profile.weights[.powerCut] = powerCuts
    return profile
  }

  /// Returns the same profile without some kinds of steps, for runners that cannot carry them out.
  public func without(_ kinds: Set<ScriptStep.Kind>) -> ScriptProfile {
    var profile = self
    for kind in kinds { profile.weights[kind] = 0 }
    return profile
  }
}
