/// One batch on its way into the index and into frames, under both locks.
struct Staging {
  /// The next sequence to give out.
  private(set) var next: UInt64
  private(set) var rawBytes = 0
  private(set) var latestTime: Timestamp?
  private let commitTime: HybridTime
  private let startsOwnFrame: Bool
  /// The last operation that makes an entry waits here until it is known whether it is the
  /// batch's last, since that one carries the mark.
  private var held: (entry: FrameBuilder.Entry, operation: OperationBatch.Operation)?
  private var frames: [FrameBuilder] = []
  private var caches: LogCaches?
  /// The slots that the batch has replaced so far, for taking it back.
  private var replaced: [(operation: Int, slot: Slot?)] = []
  /// Whether the index holds something of a batch that was given up.
  private(set) var hasLeftTraces = false

  init(next: UInt64, commitTime: HybridTime, startsOwnFrame: Bool) {
    self.next = next
    self.commitTime = commitTime
    self.startsOwnFrame = startsOwnFrame
  }

  /// Applies the whole batch, or nothing of it as far as frames are concerned.
  mutating func run(
    _ batch: OperationBatch, _ read: inout ReadState, hotCache: HotCache, caches: LogCaches
  ) throws(IndexOrStoreError) {
    self.caches = caches
    try check(batch, &read)
    var sets: [UInt32] = []
    for labels in batch.labelSets {
      do { sets.append(try read.index.labelTable.intern(labels)) } catch { throw .index(error) }
    }
    if !startsOwnFrame, let last = read.staged.last, !last.isFull, next == last.lastSequence + 1 {
      frames = [read.staged.removeLast()]
    }
    do throws(IndexOrStoreError) {
      for index in batch.operations.indices {
        try apply(index, of: batch, sets: sets, &read, hotCache)
      }
      if var last = held {
        last.entry.endsBatch = true
        try append(last.entry, last.operation, batch, read.index)
      }
    } catch {
      // A frame takes an entry whole or not at all, and there was one at most.
      if !startsOwnFrame { read.staged.append(contentsOf: frames.filter { !$0.isEmpty }) }
      takeBack(batch, &read)
      throw error
    }
    read.staged.append(contentsOf: frames)
    read.visible = next - 1
  }

  /// Gives every key the slot back that it had before the batch, so that readers and the next
  /// batch, which takes the same sequences, see nothing of it.
  private mutating func takeBack(_ batch: OperationBatch, _ read: inout ReadState) {
    for (index, slot) in replaced.reversed() {
      let key = batch.key(of: batch.operations[index])
      let before = slot ?? Slot(sequence: 0, labelSet: 0, size: .deleted)
      do {
        try read.index.upsert(key, hash: read.index.hash(key), before)
      } catch { hasLeftTraces = true }
      if let slot, !slot.isDeleted {
        read.usage.restore(slot, in: read.segment(covering: slot.sequence))
      }
    }
    for sequence in read.stagedTouches.keys where sequence > read.visible {
      read.stagedTouches[sequence] = nil
    }
    replaced = []
  }

  /// All conditions are judged on the state before the batch.
  private func check(
    _ batch: OperationBatch, _ read: inout ReadState
  ) throws(IndexOrStoreError) {
    guard !batch.conditions.isEmpty else { return }
    for operation in batch.operations where operation.condition >= 0 {
      let key = batch.key(of: operation)
      let slot: Slot?
      do {
        slot = try read.index.lookup(key, hash: read.index.hash(key))
      } catch { throw .index(error) }
      let present = slot.flatMap { $0.isDeleted ? nil : $0 }
      let holds =
        switch batch.conditions[operation.condition] {
        case .absent: present == nil
        case .present: present != nil
        case .sequence(let sequence): present?.sequence == sequence
        }
      guard holds else {
        throw .store(
          TidemarkError(
            .conflict, "the key was changed by somebody else; read it again and decide",
            sequences: present.map { $0.sequence...$0.sequence }))
      }
    }
  }

  private mutating func apply(
    _ index: Int, of batch: OperationBatch, sets: [UInt32],
    _ read: inout ReadState, _ hotCache: HotCache
  ) throws(IndexOrStoreError) {
    let operation = batch.operations[index]
    let key = batch.key(of: operation)
    guard operation.kind != .record else {
      try hold(
        FrameBuilder.Entry(
          kind: .record, endsBatch: false, sequence: next, commitTime: commitTime.rawValue),
        operation, batch, read.index)
      return
    }
    let hash = read.index.hash(key)
    var slot = Slot(
      sequence: next, labelSet: operation.labelSet < 0 ? 0 : sets[operation.labelSet],
      size: .ofEntry(key: operation.keyLength, value: operation.valueLength))
    var target: UInt64 = 0
    if operation.kind != .put {
      let found = try inIndex { () throws(IndexError) in
        try read.index.lookup(key, hash: hash)
      }
      let present = found.flatMap { $0.isDeleted ? nil : $0 }
      if operation.kind == .touch {
        guard let present else { return }
        target =
          present.size.isTouched
          ? try valueSequence(ofTouch: present.sequence, read) : present.sequence
        slot.labelSet = present.labelSet
        slot.size = present.size
        slot.size.isTouched = true
        read.stagedTouches[next] = target
      } else {
        guard present != nil || operation.isForced else { return }
        slot.labelSet = 0
        slot.size = .deleted
      }
    }
    let previous = try inIndex { () throws(IndexError) in
      try read.index.upsert(key, hash: hash, slot)
    }
    replaced.append((index, previous))
    if let previous, !previous.isDeleted {
      read.usage.supersede(previous, in: read.segment(covering: previous.sequence))
    }
    hotCache.remove(key, hash: hash)
    var entry = FrameBuilder.Entry(
      kind: operation.kind, endsBatch: false, sequence: next, commitTime: commitTime.rawValue)
    entry.labelSetID = operation.kind == .put ? slot.labelSet : 0
    entry.previous = previous?.sequence ?? 0
    entry.valueSequence = target
    try hold(entry, operation, batch, read.index)
  }

  /// The put that a touch refers to: from memory while the touch is not in the log yet.
  private func valueSequence(
    ofTouch sequence: UInt64, _ read: ReadState
  ) throws(IndexOrStoreError) -> UInt64 {
    if let staged = read.stagedTouches[sequence] { return staged }
    do throws(TidemarkError) {
      guard let caches, let segment = read.segment(covering: sequence),
        let entry = try segment.head(of: sequence, caches: caches)
      else {
        throw TidemarkError(
          .damaged, "the log lacks a touch that the index knows; run verify",
          sequences: sequence...sequence)
      }
      return entry.head.valueSequence
    } catch { throw .store(error) }
  }

  private func inIndex<R>(_ body: () throws(IndexError) -> R) throws(IndexOrStoreError) -> R {
    do { return try body() } catch { throw .index(error) }
  }

  private mutating func hold(
    _ entry: FrameBuilder.Entry, _ operation: OperationBatch.Operation,
    _ batch: OperationBatch, _ index: Index
  ) throws(IndexOrStoreError) {
    if let last = held { try append(last.entry, last.operation, batch, index) }
    held = (entry, operation)
    next += 1
    rawBytes += operation.keyLength + operation.valueLength + operation.attributesLength + 16
    let time = operation.ownTime ?? commitTime.timestamp
    latestTime = max(latestTime ?? time, time)
  }

  private mutating func append(
    _ entry: FrameBuilder.Entry, _ operation: OperationBatch.Operation,
    _ batch: OperationBatch, _ index: Index
  ) throws(IndexOrStoreError) {
    if frames.isEmpty || (startsOwnFrame && frames[frames.count - 1].isFull) {
      frames.append(FrameBuilder())
    }
    do throws(IndexError) {
      try frames[frames.count - 1].add(
        entry, key: batch.key(of: operation),
        value: operation.kind == .put || operation.kind == .record
          ? batch.value(of: operation) : nil,
        attributes: batch.attributes(of: operation)
      ) { (id) throws(IndexError) in try index.labelTable.labels(ofSet: id) }
    } catch { throw .index(error) }
  }
}
