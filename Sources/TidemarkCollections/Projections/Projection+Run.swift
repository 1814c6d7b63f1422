public import TidemarkEngine
internal import TidemarkNDJSON

extension Projection {
  /// The checkpoint as it is stored.
  static func stored(
    _ store: Store, _ key: [UInt8], _ version: UInt32
  ) throws(TidemarkError) -> (state: State, position: EntryCursor)? {
    let value = try store.engine.reader.withValue(forKey: key.rawSpan) { (value, _) in
      [UInt8](copying: value)
    }
    guard let value else { return nil }
    do {
      let pin = try ProjectionPin(decoding: value.rawSpan)
      var reader = ByteReader(value.rawSpan, at: ProjectionPin.byteCount)
      guard try reader.u32() == version else { return nil }
      let state = try JSONDecoding(JSONTape(Array(value[reader.offset...]))).decode(State.self)
      let position = EntryCursor(epoch: pin.epoch, sequence: pin.sequence)
      let bounds = try store.engine.reader.bounds()
      // Nothing was kept for it any more, and what it had yet to read may be gone.
      let now = UInt64(clamping: store.engine.environment.clock.now().milliseconds)
      if pin.isExpired(at: now), pin.sequence < bounds.historyFrom { return nil }
      if pin.sequence > 0 { try bounds.check(position) }
      return (state, position)
    } catch let error as TidemarkError {
      // A state of a history that this store does not have any more is made anew.
      if error.code == .historyDiverged { return nil }
      throw error
    } catch {
      // It is made anew of the changes, which say the same.
      return nil
    }
  }

  /// Takes changes until the store is closed or the projection stopped.
  func run() async {
    let watch = SequenceWatch(store.engine)
    wakeup.withLock { $0 = watch.wakeup }
    while !progress.withLock({ $0.isStopped }) {
      do throws(TidemarkError) {
        if try step() {
          await Task.yield()
          continue
        }
      } catch {
        // Resuming wakes, and closing does.
        guard error.code == .suspended else { return end(error) }
      }
      await watch.wakeup.sleep()
    }
  }

  /// Takes what there is, in portions.
  /// - Returns: whether there may be more.
  package func step() throws(TidemarkError) -> Bool {
    try working.withLock { (reader: inout ChangeReader?) throws(TidemarkError) in
      var work = progress.withLock { ($0.state, $0.position) }
      var count = 0
      do {
        if reader == nil {
          try store.engine.reader.bounds().check(work.1)
          reader = ChangeReader(
            store.source, after: work.1.sequence,
            options: ChangeOptions(prefix: prefix, delivery: .committed))
        }
        while count < Self.changesPerCheckpoint, let change = try reader?.next() {
          count += 1
          switch change {
          // Deletes that were yet to be told are gone: the state is made anew of what there is.
          case .reset: work = (initial, .beginning)
          case .entry(let entry, let cursor):
            try reduce(&work.0, entry)
            work.1 = cursor
          }
        }
      } catch {
        // The reader is ahead of the state: it begins again where that stands.
        reader = nil
        if let error = error as? TidemarkError { throw error }
        throw TidemarkError(
          .coding, "projection \(name) has stopped at a change: \(error)", cause: error)
      }
      let isMore = count == Self.changesPerCheckpoint
      if !isMore, let end = reader?.position, end > work.1.sequence {
        work.1 = EntryCursor(
          epoch: try store.engine.reader.bounds().cursor(at: end).epoch, sequence: end)
      }
      try take(work.0, work.1, count)
      return isMore
    }
  }

  /// Shows a new state, and writes a checkpoint where it is due.
  private func take(_ state: State, _ position: EntryCursor, _ count: Int) throws(TidemarkError) {
    let now = store.engine.environment.clock.monotonicNanoseconds()
    let isDue = progress.withLock { progress in
      progress.state = state
      progress.position = position
      progress.sinceCheckpoint += count
      // Where nothing concerns it, compaction must not wait for it all the same.
      return progress.sinceCheckpoint >= Self.changesPerCheckpoint
        || position.sequence >= progress.checkpointed + Self.entriesPerCheckpoint
        || progress.sinceCheckpoint > 0
          && now &- progress.lastCheckpoint >= Self.nanosecondsPerCheckpoint
    }
    advance.raise()
    if count > 0 { store.hub.tell(key) }
    guard isDue, store.engine.configuration.access != .readOnly else { return }
    do { try writeCheckpoint() } catch {
      // The next change tries again, when there is space.
      guard error.code == .noSpace else { throw error }
    }
  }

  /// Stores the state and how far it has come, in one entry.
  package func writeCheckpoint() throws(TidemarkError) {
    let clock = store.engine.environment.clock
    let (state, position, isStopped) = progress.withLock {
      ($0.state, $0.position, $0.isStopped)
    }
    if isStopped { return }
    var writer = ByteWriter()
    let time = UInt64(clamping: clock.now().milliseconds)
    let isAhead = PlantedBug.isOn(.projectionAheadOfState)
    let read = isAhead ? store.lastSequence : position.sequence
    ProjectionPin(sequence: read, epoch: position.epoch, time: time).encode(into: &writer)
    writer.u32(version)
    do { writer.raw(try JSONEncoding.encode(state)) } catch {
      throw TidemarkError(
        .coding, "the state of projection \(name) cannot be written: \(error)", cause: error)
    }
    var batch = OperationBatch()
    let (key, bytes) = (key, writer.bytes)
    try batch.addDerived(key.rawSpan, bytes.rawSpan)
    _ = try store.engine.stage(batch)
    progress.withLock { progress in
      progress.sinceCheckpoint = 0
      progress.checkpointed = position.sequence
      progress.lastCheckpoint = clock.monotonicNanoseconds()
    }
  }

  private func end(_ error: TidemarkError) {
    progress.withLock { progress in
      if error.code != .closed { progress.failure = error }
      progress.isStopped = true
    }
    advance.raise()
    store.hub.tell(key)
  }
}

/// Stops the projections of a store that run, by their names.
package final class RunningProjections: StoreParticipant {
  fileprivate let stops = Lock<[String: @Sendable () -> Void]>([:])

  package init() {}
}

extension Store {
  private var running: RunningProjections { participant() }

  /// Starts or continues a projection: a state that is computed from the changes of keys and kept
  /// up to date. See ``Projection``.
  ///
  /// It goes on where its checkpoint says, and begins anew, with the initial state and all changes
  /// that the store still has, when its version is another one.
  /// - Parameters:
  ///   - name: 1 to 255 bytes; one projection of a name at a time.
  ///   - version: has to change when the closure or the state does.
  ///   - initial: the state before the first change.
  ///   - prefix: only changes of keys that begin with this.
  ///   - reduce: takes a change up into the state. It must depend on nothing else, and neither ask
  ///     for projections nor forget them; an error stops the projection.
  /// - Throws: `invalidArgument`; `damaged`, `closed`.
  public func projection<State: Codable & Sendable>(
    named name: String, version: UInt32 = 1, initial: State, prefix: some BytesConvertible = "",
    _ reduce: @escaping Projection<State>.Reducer
  ) throws(TidemarkError) -> Projection<State> {
    // The one before would write its checkpoints over those of this one.
    running.stops.withLock { $0.removeValue(forKey: name) }?()
    let projection = try Projection(self, name, version, initial, Key(prefix), reduce)
    running.stops.withLock { $0[name] = { [weak projection] in projection?.stopForGood() } }
    // From now on compaction keeps what it has yet to read.
    if engine.configuration.access != .readOnly { try projection.writeCheckpoint() }
    if usesThreads { Task.detached { [projection] in await projection.run() } }
    return projection
  }

  /// Forgets a projection: it stops, its state goes, and compaction keeps nothing for it any more.
  /// - Returns: false when there is none of that name.
  @discardableResult
  public func forgetProjection(named name: String) throws(TidemarkError) -> Bool {
    running.stops.withLock { $0.removeValue(forKey: name) }?()
    let key = ProjectionPin.keys + Array(name.utf8)
    guard try engine.reader.newestEntry(ofKey: key.rawSpan) > 0 else { return false }
    var batch = OperationBatch()
    try batch.addDerived(key.rawSpan, nil)
    _ = try engine.stage(batch)
    return true
  }

  /// The projections that the store knows, with the sequence up to which each has read.
  public func knownProjections() throws(TidemarkError) -> [KnownProjection] {
    try ProjectionPin.all(in: engine.reader).map { name, pin in
      KnownProjection(
        name: String(decoding: name, as: UTF8.self), sequence: pin?.sequence ?? 0,
        checkpoint: Timestamp(milliseconds: Int64(clamping: pin?.time ?? 0)))
    }
  }
}

/// A projection that a store has a checkpoint of, as ``Store/knownProjections()`` lists them.
public struct KnownProjection: Sendable, Hashable {
  /// The name that the projection was made with.
  public var name: String
  /// The last sequence that the projection's checkpoint covers. Compaction keeps the changes after
  /// it.
  public var sequence: UInt64
  /// The time at which the checkpoint was written. After 90 days without a new one, compaction
  /// keeps nothing for the projection.
  public var checkpoint: Timestamp
}
