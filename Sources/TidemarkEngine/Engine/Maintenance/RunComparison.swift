/// Compares the sorted runs of the index with all entries of the log up to their sequence,
/// in one pass and without keeping keys.
///
/// A slot is what the index knows of a key: the sequence of its newest entry, and whether that is a
/// delete. Sequences are unique. So if every entry's key has a slot at or above the entry, and as
/// many entries are met at their key's slot as there are live keys, each slot names the newest
/// entry of its key. Slots of deleted keys may have outlived their tombstones.
struct RunComparison {
  private let runs: RunList
  private let seed: UInt64
  /// Keys deleted up to here need no slot: compaction lets index and log forget such deletes.
  private let forgottenThrough: UInt64
  /// Sequences lost in damage on record: slots may name them.
  private let holes: [ClosedRange<UInt64>]
  /// How many entries were met at the slot of a live key.
  private var met = 0
  /// Newest entry of keys without a slot, by the key's hash; and whether the index may lack it.
  private var absent: [UInt64: (sequence: UInt64, isForgettable: Bool)] = [:]
  /// Whether there were too many keys without a slot to remember: then nothing is concluded.
  private var isPartial = false
  private(set) var problem: String?

  init(_ runs: RunList, manifest: Manifest) {
    self.runs = runs
    seed = manifest.hashSeed
    forgottenThrough = max(
      manifest.droppedThrough, manifest.historyFrom > 1 ? manifest.historyFrom : 0)
    holes = manifest.damage.map { $0.firstSequence...max($0.firstSequence, $0.lastSequence) }
  }

  /// Compares the entries of a frame.
  mutating func add(_ front: DecodedFront) throws(IndexError) {
    for entry in front.entries
    where entry.kind != .record && entry.sequence <= runs.sequence {
      let key = front.key(of: entry)
      let hash = KeyHash.hash(key, seed: seed)
      guard let slot = try runs.lookup(key, hash: hash) else {
        noteAbsent(entry, hash, isEviction: entry.kind == .evict && front.isCached(entry))
        continue
      }
      // A touch renews an older put and has no value itself: of an absent key it changes nothing.
      if slot.sequence < entry.sequence, entry.kind == .touch, slot.isDeleted { continue }
      if slot.sequence < entry.sequence {
        problem = "the index does not know the newest entry of a key"
      }
      guard slot.sequence == entry.sequence else { continue }
      if !slot.isDeleted, !DerivedKeys.contains(key) { met += 1 }
      if slot.isDeleted != entry.kind.removes {
        problem = "the index and the log differ about whether a key is deleted"
      }
    }
  }

  private mutating func noteAbsent(_ entry: EntryHead, _ hash: UInt64, isEviction: Bool) {
    guard entry.kind != .touch else { return }
    if let known = absent[hash], known.sequence > entry.sequence { return }
    guard absent.count < Limits.verifyAbsentKeys else {
      isPartial = true
      return
    }
    let isForgettable = isEviction || entry.kind.removes && entry.sequence <= forgottenThrough
    absent[hash] = (entry.sequence, isForgettable)
  }

  /// Draws the conclusions, once all entries were compared.
  mutating func finish() {
    guard problem == nil, !isPartial else { return }
    if absent.values.contains(where: { !$0.isForgettable }) {
      problem = "the index lacks a key"
    } else if met != runs.liveKeys, holes.isEmpty {
      problem = "the index names entries that the log does not have"
    }
  }
}
