/// Stages one batch: gives its operations sequences, applies them to the index and puts them into
/// frames in memory. It is used once; `run` is called under the locks of writer and reader.
/// A *cached* value is a copy of what a server has, an *owned* one is the user's. A *touch* renews
/// the validity of an older put without its value. *Derived* entries are the rows of indexes.
struct Staging {
  /// So many keys are looked for in the index at a time.
  private static let prefetched = 32
  /// The next sequence to give out.
  private(set) var next: UInt64
  /// The sequence of the first derived entry, behind those of the caller; nil for no such entries.
  private(set) var firstDerived: UInt64?
  private(set) var rawBytes = 0
  /// The length of the operations' labels, which frames may have to repeat.
  private(set) var labelBytes = 0
  private(set) var latestTime: Timestamp?
  /// Whether the index knows a part of the batch. If the rest fails, the caller makes the index
  /// anew, since it names sequences that are in no frame.
  private(set) var hasChangedIndex = false
  private let sequenceBefore: UInt64
  private let commitTime: HybridTime
  /// Whether the batch goes into new frames; one operation may join the last staged frame instead.
  private let startsOwnFrame: Bool
  /// Compresses blocks of the batch's new frames on a second thread; nil for none.
  private let packing: FramePacking?
  private var frames: [FrameBuilder] = []
  /// Set by `run`, for reading earlier touches from the log.
  private var caches: LogCaches?

  init(next: UInt64, commitTime: HybridTime, startsOwnFrame: Bool, packing: FramePacking?) {
    self.next = next
    sequenceBefore = next - 1
    self.commitTime = commitTime
    self.startsOwnFrame = startsOwnFrame
    self.packing = packing
  }

  /// Applies the whole batch and makes it visible. When it throws, the staged frames are as before,
  /// while the index may have changed; see `hasChangedIndex`.
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
    // The sequences within a frame are dense, so a frame takes only the sequence after its last.
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
          if index == batch.derivedFrom { firstDerived = next }
          try apply(operation, hash: hash, of: batch, sets: sets, &read, hotCache)
        }
      }
    } catch {
      let first = sequenceBefore + 1
      read.stagedTouches = read.stagedTouches.filter { $0.key < first }
      // The shared frame goes back. It holds earlier batches alone: `apply` appends to a frame as
      // its last step, which cannot fail.
      if !startsOwnFrame { read.staged.append(contentsOf: frames) }
      throw error
    }
    // Recovery cuts frames at the log's end off unless a batch ends with them.
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

  /// Throws `conflict` unless all conditions hold on the state before the batch, and no cached put
  /// hides what the user wrote or deleted: peers may not have been sent that yet.
  private func check(_ batch: OperationBatch, _ read: inout ReadState) throws(IndexOrStoreError) {
    let protects = batch.hasCached && !batch.mayCoverOwned
    guard protects || !batch.conditions.isEmpty else { return }
    // The keys that the batch itself writes or deletes as the user's own, before a cached put.
    var owned: Set<[UInt8]> = []
    for (index, operation) in batch.operations.enumerated() {
      // Derived entries have no conditions, and users cannot write their keys.
      if index >= batch.derivedFrom { break }
      let isCachedPut = protects && operation.isCached && operation.kind == .put
      if protects, !operation.isCached, operation.kind == .put || operation.kind == .delete {
        owned.insert([UInt8](copying: batch.key(of: operation)))
      }
      guard isCachedPut || operation.condition >= 0 else { continue }
      let key = batch.key(of: operation)
      let slot = try inIndex { () throws(IndexError) in
        try read.index.lookup(key, hash: read.index.hash(key))
      }
      let isInBatch = isCachedPut && !owned.isEmpty && owned.contains([UInt8](copying: key))
      // The slot of an owned delete is not cached either, so that a tombstone is not hidden.
      if isCachedPut, isInBatch || slot.map({ !$0.size.isCached }) ?? false {
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
        // `OperationBatch.resolveHashes` has made a sequence of it before staging.
        case .hash: false
        // Touches and evictions alone have it: where it fails `apply` leaves them out.
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

  /// Applies one operation; one that changes nothing takes no sequence.
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
      // Users cannot write this key, so the put hides nothing of theirs: no look-up is needed.
      slot.size = slot.size.cached(over: nil)
    } else if operation.isCached, operation.kind != .touch {
      let condition = operation.condition < 0 ? nil : batch.conditions[operation.condition]
      guard let size = try sizeOfCached(operation, condition, key, hash: hash, slot.size, read)
      else { return }
      slot.size = size
    }
    // A delete of an absent key makes no entry; imports force one for each of their lines.
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

  /// The content of a touch, and in `slot` the labels and size of the value that it renews; nil
  /// where there is no value to renew, so that the touch makes no entry.
  private func renewal(
    by operation: OperationBatch.Operation, _ key: RawSpan, hash: UInt64,
    of batch: OperationBatch, _ slot: inout Slot, _ read: inout ReadState
  ) throws(IndexOrStoreError) -> Touch? {
    let found = try inIndex { () throws(IndexError) in try read.index.lookup(key, hash: hash) }
    guard let present = found, !present.isDeleted else { return nil }
    // A cache may renew its own value, and not one that the user has written since.
    if operation.isCached, !present.size.isCached { return nil }
    if operation.condition >= 0, case .isNewest(let meant) = batch.conditions[operation.condition],
      present.sequence != meant
    {
      return nil
    }
    // A touch names the put with the value, never another touch: behind an earlier one it takes
    // over the put's sequence and what was renewed so far.
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

  /// The size class of a cached put, or of its key after an eviction. Nil for an eviction that does
  /// nothing: the key is absent, its value is the user's, or a newer one than `condition` names.
  private func sizeOfCached(
    _ operation: OperationBatch.Operation, _ condition: OperationBatch.Condition?,
    _ key: RawSpan, hash: UInt64, _ size: SizeClass, _ read: borrowing ReadState
  ) throws(IndexOrStoreError) -> SizeClass? {
    let index = read.index
    let present = try inIndex { () throws(IndexError) in try index.lookup(key, hash: hash) }
    guard operation.kind == .evict else { return size.cached(over: present?.size) }
    guard let present, !present.isDeleted else { return nil }
    if PlantedBug.isOn(.ownedEvicted) { return .deleted }  // A bug that tests switch on.
    guard present.size.isCached else { return nil }
    if case .isNewest(let sequence) = condition, present.sequence != sequence { return nil }
    return present.size.afterEviction
  }

  /// The content of an earlier touch: from memory while it is not in the log yet.
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
        valueSequence: entry.head.valueSequence, maxAge: attributes.maxAge, hash: attributes.hash)
    } catch { throw .store(error) }
  }

  private func inIndex<R>(_ body: () throws(IndexError) -> R) throws(IndexOrStoreError) -> R {
    do { return try body() } catch { throw .index(error) }
  }

  /// Adds an entry to the last frame and counts its sequence up.
  /// - Parameter merged: a touch's attributes with those of earlier touches; nil takes its own.
  private mutating func append(
    _ entry: FrameBuilder.Entry, _ operation: OperationBatch.Operation, _ batch: OperationBatch,
    attributes merged: [UInt8]? = nil
  ) {
    if frames.isEmpty || (startsOwnFrame && frames[frames.count - 1].isFull) {
      frames.append(FrameBuilder(packing: packing))
    }
    next += 1
    rawBytes += operation.keyLength + operation.valueLength + Limits.entryOverheadBytes
    rawBytes += merged?.count ?? operation.attributesLength
    if operation.labelSet >= 0 { labelBytes += batch.labels.sets[operation.labelSet].storedBytes }
    let time = operation.ownTime ?? commitTime.timestamp
    latestTime = max(latestTime ?? time, time)
    let key = batch.key(of: operation)
    let frame = frames.count - 1
    if let merged {
      // A touch, which has neither value nor labels.
      frames[frame].append(entry, key: key, value: nil, attributes: merged.rawSpan)
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
