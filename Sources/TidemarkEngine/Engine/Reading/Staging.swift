/// One batch on its way into the index and into frames, under both locks.
struct Staging {
  /// So many keys are looked for in the index at a time.
  private static let prefetched = 32
  /// The next sequence to give out.
  private(set) var next: UInt64
  /// The next sequence behind the entries that the caller asked for, where derived ones follow.
  private(set) var ownEnd: UInt64?
  private(set) var rawBytes = 0
  /// The length of the operations' labels, which frames may have to repeat.
  private(set) var labelBytes = 0
  private(set) var latestTime: Timestamp?
  /// Whether the index knows a part of the batch already: if the rest fails, the index is wrong.
  private(set) var hasChangedIndex = false
  private let sequenceBefore: UInt64
  private let commitTime: HybridTime
  /// Whether the batch goes into new frames; else, being one operation, it may be appended to the
  /// last frame that was staged.
  private let startsOwnFrame: Bool
  /// Gets the blocks of its own frames.
  private let packing: BatchPacking?
  private var frames: [FrameBuilder] = []
  /// Set by `run`, for looking up earlier touches.
  private var caches: LogCaches?

  init(next: UInt64, commitTime: HybridTime, startsOwnFrame: Bool, packing: BatchPacking?) {
    self.next = next
    sequenceBefore = next - 1
    self.commitTime = commitTime
    self.startsOwnFrame = startsOwnFrame
    self.packing = packing
  }

  /// Applies the whole batch, or nothing of it as far as frames are concerned.
  mutating func run(
    _ batch: OperationBatch, _ read: inout ReadState, hotCache: HotCache, caches: LogCaches
  ) throws(IndexOrStoreError) {
    self.caches = caches
    try check(batch, &read)
    var sets: [UInt32] = []
    sets.reserveCapacity(batch.labels.sets.count)
    for set in batch.labels.sets.indices {
      sets.append(try intern(set, of: batch, read.index.labelTable))
    }
    if !startsOwnFrame, let last = read.staged.last, !last.isFull, next == last.lastSequence + 1 {
      frames = [read.staged.removeLast()]
    }
    do throws(IndexOrStoreError) {
      var hashes: [UInt64] = []
      let operations = batch.operations
      for start in stride(from: 0, to: operations.count, by: Self.prefetched) {
        let portion = operations[start..<min(start + Self.prefetched, operations.count)]
        hashes.removeAll(keepingCapacity: true)
        for operation in portion { hashes.append(read.index.hash(batch.key(of: operation))) }
        if portion.count > 1 { read.index.prefetch(hashes) }
        for (index, (operation, hash)) in zip(portion.indices, zip(portion, hashes)) {
          if index == batch.derivedFrom { ownEnd = next }
          try apply(operation, hash: hash, of: batch, sets: sets, &read, hotCache)
        }
      }
    } catch {
      let first = sequenceBefore + 1
      read.stagedTouches = read.stagedTouches.filter { $0.key < first }
      // A shared frame holds earlier batches alone: the one operation of this one has failed.
      if !startsOwnFrame { read.staged.append(contentsOf: frames) }
      throw error
    }
    if next - 1 > sequenceBefore { frames[frames.count - 1].endBatch() }
    read.staged.append(contentsOf: frames)
    read.visible = next - 1
  }

  private func intern(
    _ set: Int, of batch: OperationBatch, _ table: LabelTable
  ) throws(IndexOrStoreError) -> UInt32 {
    do throws(IndexError) {
      let count = batch.labels.sets[set].count
      if count == 1 { return try table.intern(batch.labels.label(0, ofSet: set)) }
      table.beginSet()
      for number in 0..<count { try table.addLabel(batch.labels.label(number, ofSet: set)) }
      return try table.finishSet()
    } catch { throw .index(error) }
  }

  /// All conditions are judged on the state before the batch.
  private func check(
    _ batch: OperationBatch, _ read: inout ReadState
  ) throws(IndexOrStoreError) {
    let protects = batch.hasCached && !batch.mayCoverOwned
    guard protects || !batch.conditions.isEmpty else { return }
    // The keys that the batch itself gives to the user, beside cached values.
    var owned: Set<[UInt8]> = []
    for (index, operation) in batch.operations.enumerated() {
      if index >= batch.derivedFrom { break }
      let isCachedPut = protects && operation.isCached && operation.kind == .put
      if protects, !operation.isCached, operation.kind == .put || operation.kind == .delete {
        owned.insert([UInt8](copying: batch.key(of: operation)))
      }
      guard isCachedPut || operation.condition >= 0 else { continue }
      let key = batch.key(of: operation)
      let slot: Slot?
      do {
        slot = try read.index.lookup(key, hash: read.index.hash(key))
      } catch { throw .index(error) }
      let isHidden = isCachedPut && !owned.isEmpty && owned.contains([UInt8](copying: key))
      if isCachedPut, isHidden || slot.map({ !$0.size.isCached }) ?? false {
        throw .store(
          TidemarkError(
            .conflict, "the key holds, or held, what the user wrote; a cached value cannot hide it",
            sequences: slot.map { $0.sequence...$0.sequence }, operation: index))
      }
      guard operation.condition >= 0 else { continue }
      let present = slot.flatMap { $0.isDeleted ? nil : $0 }
      let holds =
        switch batch.conditions[operation.condition] {
        case .absent: present == nil
        case .present: present != nil
        case .sequence(let sequence): present?.sequence == sequence
        case .entry(let sequence): (slot?.sequence ?? 0) == sequence
        // Made a sequence before anything is staged.
        case .hash: false
        // Looked at when it is applied.
        case .isNewest: true
        }
      guard holds else {
        throw .store(
          TidemarkError(
            .conflict, "the key was changed by somebody else; read it again and decide",
            sequences: present.map { $0.sequence...$0.sequence }, operation: index))
      }
    }
  }

  private mutating func apply(
    _ operation: OperationBatch.Operation, hash: UInt64, of batch: OperationBatch,
    sets: [UInt32], _ read: inout ReadState, _ hotCache: HotCache
  ) throws(IndexOrStoreError) {
    let key = batch.key(of: operation)
    guard operation.kind != .record else {
      append(
        FrameBuilder.Entry(
          kind: .record, endsBatch: false, sequence: next, commitTime: commitTime.rawValue),
        operation, batch)
      return
    }
    var slot = Slot(
      sequence: next, labelSet: operation.labelSet < 0 ? 0 : sets[operation.labelSet],
      size: .ofEntry(key: operation.keyLength, value: operation.valueLength))
    var touch: Touch?
    if operation.kind == .touch {
      touch = try renewal(by: operation, key, hash: hash, of: batch, &slot, &read)
      guard touch != nil else { return }
    } else if operation.kind != .put {
      slot.labelSet = 0
      slot.size = .deleted
    }
    if operation.kind == .put, DerivedKeys.contains(key) {
      // Users cannot write its key, so it hides nothing of theirs and is not looked up.
      slot.size = slot.size.cached(over: nil)
    } else if operation.isCached, operation.kind != .touch {
      let evicted = operation.condition < 0 ? nil : batch.conditions[operation.condition]
      guard let size = try sizeOfCached(operation, evicted, key, hash: hash, slot.size, read)
      else { return }
      slot.size = size
    }
    let needsKey = operation.kind == .delete && !operation.isForced
    let link = try inIndex { () throws(IndexError) in
      try read.replace(key, hash: hash, by: slot, needsKey: needsKey, hotCache)
    }
    guard let link else { return }
    hasChangedIndex = true
    if operation.kind == .evict, operation.isCached {
      read.usage.noteEviction(ofKey: operation.keyLength, in: read.segments.last)
    }
    var entry = FrameBuilder.Entry(
      kind: operation.kind, endsBatch: false, sequence: next, commitTime: commitTime.rawValue)
    entry.labelSetID = operation.kind == .put ? slot.labelSet : 0
    entry.previous = link
    entry.valueSequence = touch?.valueSequence ?? 0
    append(entry, operation, batch, attributes: touch?.encoded)
  }

  /// The content of a touch, whose slot is that of the value which it renews; nil where there is
  /// none.
  private func renewal(
    by operation: OperationBatch.Operation, _ key: RawSpan, hash: UInt64,
    of batch: OperationBatch, _ slot: inout Slot, _ read: inout ReadState
  ) throws(IndexOrStoreError) -> Touch? {
    let found = try inIndex { () throws(IndexError) in try read.index.lookup(key, hash: hash) }
    guard let present = found, !present.isDeleted else { return nil }
    // A cache renews what it meant, and nothing that the user has written meanwhile.
    if operation.isCached, !present.size.isCached { return nil }
    if operation.condition >= 0, case .isNewest(let meant) = batch.conditions[operation.condition],
      present.sequence != meant
    {
      return nil
    }
    var renewed = Touch(valueSequence: present.sequence)
    if present.size.isTouched { renewed = try touch(present.sequence, read) }
    let merged = try renewed.renew(by: batch.attributes(of: operation))
    slot.labelSet = present.labelSet
    slot.size = present.size
    slot.size.isTouched = true
    read.stagedTouches[next] = renewed
    renewed.encoded = merged
    return renewed
  }

  /// The size class of a cached value, or of what is left of one that is given up; nil where there
  /// is nothing to give up: only cached values are, and only those that were meant.
  private func sizeOfCached(
    _ operation: OperationBatch.Operation, _ condition: OperationBatch.Condition?,
    _ key: RawSpan, hash: UInt64, _ size: SizeClass, _ read: borrowing ReadState
  ) throws(IndexOrStoreError) -> SizeClass? {
    let index = read.index
    let present = try inIndex { () throws(IndexError) in try index.lookup(key, hash: hash) }
    guard operation.kind == .evict else { return size.cached(over: present?.size) }
    guard let present, !present.isDeleted else { return nil }
    if PlantedBug.isOn(.ownedEvicted) { return .deleted }
    guard present.size.isCached else { return nil }
    if case .isNewest(let sequence) = condition, present.sequence != sequence { return nil }
    return present.size.afterEviction
  }

  /// The attributes of an earlier touch: from memory while it is not in the log yet.
  private func touch(
    _ sequence: UInt64, _ read: borrowing ReadState
  ) throws(IndexOrStoreError) -> Touch {
    if let staged = read.stagedTouches[sequence] { return staged }
    do throws(TidemarkError) {
      guard let caches, let segment = read.segment(covering: sequence),
        let entry = try segment.head(of: sequence, caches: caches)
      else {
        throw TidemarkError(
          .damaged, "the log lacks a touch that the index knows; run verify",
          sequences: sequence...sequence)
      }
      let attributes = try entry.attributes()
      return Touch(
        valueSequence: entry.head.valueSequence, maxAge: attributes.maxAge,
        hash: attributes.hash)
    } catch { throw .store(error) }
  }

  private func inIndex<R>(_ body: () throws(IndexError) -> R) throws(IndexOrStoreError) -> R {
    do { return try body() } catch { throw .index(error) }
  }

  /// Adds an entry to the last frame.
  /// - Parameter own: in the place of the operation's own attributes.
  private mutating func append(
    _ entry: FrameBuilder.Entry, _ operation: OperationBatch.Operation, _ batch: OperationBatch,
    attributes own: [UInt8]? = nil
  ) {
    if frames.isEmpty || (startsOwnFrame && frames[frames.count - 1].isFull) {
      frames.append(FrameBuilder(packing: packing?.frame))
    }
    next += 1
    rawBytes += operation.keyLength + operation.valueLength + Limits.entryOverheadBytes
    rawBytes += own?.count ?? operation.attributesLength
    if operation.labelSet >= 0 { labelBytes += batch.labels.sets[operation.labelSet].storedBytes }
    let time = operation.ownTime ?? commitTime.timestamp
    latestTime = max(latestTime ?? time, time)
    let key = batch.key(of: operation)
    let frame = frames.count - 1
    if let own {
      // A touch, which has neither value nor labels.
      frames[frame].append(entry, key: key, value: nil, attributes: own.rawSpan)
      return
    }
    if frames[frame].needsLabels(ofSet: entry.labelSetID) {
      frames[frame].addLabelSet(entry.labelSetID, batch.labels, operation.labelSet)
    }
    let hasValue = operation.kind == .put || operation.kind == .record
    frames[frame].append(
      entry, key: key, value: hasValue ? batch.value(of: operation) : nil,
      attributes: batch.attributes(of: operation))
  }
}
