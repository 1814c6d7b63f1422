/// The newest entry of one of many keys, as the index knows it.
package struct KeyedEntry: Sendable, Hashable {
  /// The hash of the key.
  package var hash: UInt64
  /// The sequence of the key's newest entry; 0 where it is absent.
  package var sequence: UInt64
  package var isTouch: Bool
  /// Whether the entry is a cached value: a copy of what a server has.
  package var isCached = false

  package init(hash: UInt64, sequence: UInt64 = 0, isTouch: Bool = false) {
    self.hash = hash
    self.sequence = sequence
    self.isTouch = isTouch
  }

  fileprivate init(hash: UInt64, _ slot: Slot?) {
    self.init(hash: hash)
    guard let slot, !slot.isDeleted else { return }
    sequence = slot.sequence
    isTouch = slot.size.isTouched
    isCached = slot.size.isCached
  }
}

extension Reader {
  /// How many keys are looked up in one hold of the readers' lock.
  private static let keysAtOnce = 64

  /// The newest entries of many keys, in the order of `ends`.
  ///
  /// The sorted runs of the index, which never change and may have to be read, are searched without
  /// a lock; then, under the readers' lock, the memtables, which are newer than any run.
  /// - Parameter ends: the rest of each key; in ascending order they are found faster.
  package func newestEntries(
    ofKeysWith prefix: [UInt8], _ ends: [[UInt8]]
  ) throws(TidemarkError) -> [KeyedEntry] {
    if ends.count == 1 {
      let key = prefix + ends[0]
      let hash = KeyHash.hash(key.rawSpan, seed: hashSeed)
      return [KeyedEntry(hash: hash, try slot(ofKey: key.rawSpan, hash: hash))]
    }
    var found: [KeyedEntry] = []
    found.reserveCapacity(ends.count)
    var keys = KeyPage()
    var hashes: [UInt64] = []
    var key = prefix
    var nearby = NearbyKeys(reading.withLock { $0.index.runs })
    while found.count < ends.count {
      keys.removeAll()
      hashes.removeAll(keepingCapacity: true)
      for end in ends[found.count...].prefix(Self.keysAtOnce) {
        key.removeSubrange(prefix.count...)
        key.append(contentsOf: end)
        keys.append(key.rawSpan, Slot(sequence: 0, labelSet: 0, size: .deleted))
        hashes.append(KeyHash.hash(key.rawSpan, seed: hashSeed))
      }
      // On an error all keys are asked under the lock, where a damaged index is rebuilt.
      let slots = (try? nearby.slots(of: keys, hashes)) ?? []
      try addEntries(of: keys, hashes, slots, &nearby, to: &found)
    }
    return found
  }

  /// Adds the newest entries of some keys.
  /// - Parameter slots: what the runs in `nearby` say; empty if they could not be read.
  private func addEntries(
    of keys: KeyPage, _ hashes: [UInt64], _ slots: [Slot?], _ nearby: inout NearbyKeys,
    to found: inout [KeyedEntry]
  ) throws(TidemarkError) {
    let first = found.count
    try withIndex { (read) throws(IndexOrStoreError) in
      // `withIndex` calls this again after it has rebuilt a damaged index.
      found.removeSubrange(first...)
      // If a checkpoint has replaced runs since, `slots` may lack what was in a memtable then.
      let isCurrent = nearby.isCurrent(read.index)
      if !isCurrent { nearby = NearbyKeys(read.index.runs) }
      read.index.prefetch(hashes, runs: false)
      for number in 0..<keys.count {
        let key = keys.key(at: number)
        var slot = read.index.lookupDeltas(key, hash: hashes[number])
        if slot == nil, isCurrent, number < slots.count {
          slot = slots[number]
        } else if slot == nil {
          do throws(IndexError) {
            slot = try read.index.runs.lookup(key, hash: hashes[number], maySearch: true)
          } catch { throw .index(error) }
        }
        if read.uncertainBelow > 0, slot?.sequence ?? 0 < read.uncertainBelow {
          throw .store(TidemarkError.possiblyStale(read.uncertainBelow))
        }
        found.append(KeyedEntry(hash: hashes[number], slot))
      }
    }
  }
}
