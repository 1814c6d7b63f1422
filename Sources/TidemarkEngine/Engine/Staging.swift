/// One batch on its way into the index and into frames, under both locks.
struct Staging {
  /// The next sequence to give out.
  private(set) var next: UInt64
  private(set) var rawBytes = 0
  /// The length of the operations' labels, which frames may have to repeat.
  private(set) var labelBytes = 0
  private(set) var latestTime: Timestamp?
  /// Whether the index knows a part of the batch already: if the rest fails, the index is wrong.
  private(set) var hasChangedIndex = false
  private let sequenceBefore: UInt64
  private let commitTime: HybridTime
  private let startsOwnFrame: Bool
  /// The last operation that makes an entry waits here until it is known whether it is the
  /// batch's last, since that one carries the mark.
  private var held: Held?
  private struct Held {
    var entry: FrameBuilder.Entry
    var operation: OperationBatch.Operation
    /// In the place of the operation's own.
    var attributes: [UInt8]?
  }
  private var frames: [FrameBuilder] = []
  private var caches: LogCaches?

  init(next: UInt64, commitTime: HybridTime, startsOwnFrame: Bool) {
    self.next = next
    sequenceBefore = next - 1
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
      for operation in batch.operations {
        try apply(operation, of: batch, sets: sets, &read, hotCache)
      }
      if var last = held {
        last.entry.endsBatch = true
        try append(last, batch, read.index)
      }
    } catch {
      let first = sequenceBefore + 1
      read.stagedTouches = read.stagedTouches.filter { $0.key < first }
      if !startsOwnFrame { read.staged.append(contentsOf: frames) }
      throw error
    }
    read.staged.append(contentsOf: frames)
    read.visible = next - 1
  }

  /// All conditions are judged on the state before the batch.
  private func check(
    _ batch: OperationBatch, _ read: inout ReadState
  ) throws(IndexOrStoreError) {
    guard !batch.conditions.isEmpty else { return }
    for (index, operation) in batch.operations.enumerated() where operation.condition >= 0 {
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
        case .entry(let sequence): (slot?.sequence ?? 0) == sequence
        // Made a sequence before anything is staged.
        case .hash: false
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
    _ operation: OperationBatch.Operation, of batch: OperationBatch, sets: [UInt32],
    _ read: inout ReadState, _ hotCache: HotCache
  ) throws(IndexOrStoreError) {
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
    var touch: Touch?
    if operation.kind != .put {
      let found = try inIndex { () throws(IndexError) in
        try read.index.lookup(key, hash: hash)
      }
      let present = found.flatMap { $0.isDeleted ? nil : $0 }
      if operation.kind == .touch {
        guard let present else { return }
        var renewed = Touch(valueSequence: present.sequence)
        if present.size.isTouched { renewed = try self.touch(present.sequence, read) }
        let merged = try renewed.renew(by: batch.attributes(of: operation))
        touch = renewed
        touch?.encoded = merged
        slot.labelSet = present.labelSet
        slot.size = present.size
        slot.size.isTouched = true
        read.stagedTouches[next] = renewed
      } else {
        guard present != nil || operation.isForced else { return }
        slot.labelSet = 0
        slot.size = .deleted
      }
    }
    let previous = try inIndex { () throws(IndexError) in
      try read.index.upsert(key, hash: hash, slot)
    }
    hasChangedIndex = true
    if let previous, !previous.isDeleted {
      read.usage.supersede(previous, in: read.segment(covering: previous.sequence))
    }
    Self.forget(key, hash: hash, hotCache)
    var entry = FrameBuilder.Entry(
      kind: operation.kind, endsBatch: false, sequence: next, commitTime: commitTime.rawValue)
    entry.labelSetID = operation.kind == .put ? slot.labelSet : 0
    entry.previous = Self.link(to: previous)
    entry.valueSequence = touch?.valueSequence ?? 0
    try hold(entry, operation, batch, read.index, attributes: touch?.encoded)
  }

  /// The link of the entry that replaces a slot to the one before.
  static func link(to previous: Slot?) -> UInt64 {
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.linkEndsAtDelete), previous?.isDeleted == true { return 0 }
    #endif
    return previous?.sequence ?? 0
  }

  static func forget(_ key: RawSpan, hash: UInt64, _ hotCache: HotCache) {
    #if TIDEMARK_PLANTED
      if PlantedBug.isOn(.cacheNotInvalidated) { return }
    #endif
    hotCache.remove(key, hash: hash)
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

  private mutating func hold(
    _ entry: FrameBuilder.Entry, _ operation: OperationBatch.Operation,
    _ batch: OperationBatch, _ index: Index, attributes: [UInt8]? = nil
  ) throws(IndexOrStoreError) {
    if let last = held { try append(last, batch, index) }
    held = Held(entry: entry, operation: operation, attributes: attributes)
    next += 1
    let attributesLength = attributes?.count ?? operation.attributesLength
    rawBytes += operation.keyLength + operation.valueLength + attributesLength + 16
    if operation.labelSet >= 0 { labelBytes += batch.labelBytes(ofSet: operation.labelSet) }
    let time = operation.ownTime ?? commitTime.timestamp
    latestTime = max(latestTime ?? time, time)
  }

  private mutating func append(
    _ held: Held, _ batch: OperationBatch, _ index: Index
  ) throws(IndexOrStoreError) {
    let operation = held.operation
    if frames.isEmpty || (startsOwnFrame && frames[frames.count - 1].isFull) {
      frames.append(FrameBuilder())
    }
    let given = batch.attributes(of: operation)
    let own = held.attributes ?? []
    let attributes = held.attributes == nil ? given : own.rawSpan
    do throws(IndexError) {
      try frames[frames.count - 1].add(
        held.entry, key: batch.key(of: operation),
        value: operation.kind == .put || operation.kind == .record
          ? batch.value(of: operation) : nil,
        attributes: attributes
      ) { (id) throws(IndexError) in try index.labelTable.labels(ofSet: id) }
    } catch { throw .index(error) }
  }
}
