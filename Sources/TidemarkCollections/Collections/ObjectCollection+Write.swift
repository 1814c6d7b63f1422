public import TidemarkEngine

extension ObjectCollection {
  /// How often a write begins anew when somebody else writes the object in between.
  private static var attempts: Int { 64 }

  /// Writes an object. It replaces the object with the same id, if there is one.
  ///
  /// Fields of the one before that this program's type does not know stay.
  /// - Parameters:
  ///   - object: the object.
  ///   - options: the caller's time, priority and the like.
  ///   - durability: when to return; nil for the store's.
  /// - Throws: `coding` when it cannot be encoded; `conflict` when others write it all the time;
  ///   and what ``Store/write(_:durability:)`` throws.
  @discardableResult
  public func put(
    _ object: Object, options: PutOptions = PutOptions(), durability: Durability? = nil
  ) async throws(TidemarkError) -> WriteReceipt {
    let key = try core.key(core.id(object))
    return try await retrying { () throws(TidemarkError) in
      var batch = WriteBatch()
      let old = try core.replaced(key)
      try batch.add(object, key, over: old.object, if: old.condition, options, core)
      return try await store.write(batch, durability: durability)
    }
  }

  /// Writes an object only when the collection has no object with its id.
  /// - Throws: `conflict` when there is one.
  @discardableResult
  public func insert(
    _ object: Object, options: PutOptions = PutOptions(), durability: Durability? = nil
  ) async throws(TidemarkError) -> WriteReceipt {
    var batch = WriteBatch()
    try batch.add(object, core.key(core.id(object)), over: nil, if: .absent, options, core)
    return try await store.write(batch, durability: durability)
  }

  /// Changes an object: reads it, calls `change`, and writes the result. When `change` leaves the
  /// object as it was, nothing is written.
  ///
  /// When somebody else has written the object in between, `change` is called again with what is
  /// there then. It runs where the caller does, on the main actor too.
  /// - Parameters:
  ///   - id: the object's id.
  ///   - durability: when to return; nil for the store's.
  ///   - change: changes the object; it may not change its id.
  /// - Returns: the object as it is now; nil when there is none.
  /// - Throws: what `change` throws; `invalidArgument` when the id was changed; see
  ///   ``put(_:options:durability:)``.
  @discardableResult
  nonisolated(nonsending) public func update(
    _ id: ID, durability: Durability? = nil, _ change: (inout Object) throws -> Void
  ) async throws -> Object? {
    let key = try core.key(id)
    let idBytes = key[core.prefix.count...]
    return try await retrying {
      guard let old = try core.stored(key, in: source, isToBeWritten: true) else { return nil }
      var object = try core.codec.decode(old.bytes, version: old.version, id: idBytes)
      let before = try core.codec.encode(object, id: idBytes)
      try change(&object)
      // Texts that are equal may differ in their bytes, which are the key.
      guard core.id(object).keyBytes.elementsEqual(idBytes) else {
        throw TidemarkError(
          .invalidArgument, "an update may not change the object's id; put and delete instead",
          object: ObjectPlace(collection: name, id: "\(id)"))
      }
      let after = try core.codec.encode(object, id: idBytes)
      guard after != before else { return object }
      var batch = WriteBatch()
      let condition = WriteCondition.sequence(old.sequence)
      try batch.add(object, key, over: old, if: condition, PutOptions(), core, encoded: after)
      try await store.write(batch, durability: durability)
      return object
    }
  }

  /// Deletes the object with an id.
  /// - Returns: false when there was none.
  @discardableResult
  public func delete(_ id: ID, durability: Durability? = nil) async throws(TidemarkError) -> Bool {
    try await store.delete(core.key(id), durability: durability)
  }

  /// Deletes all objects, or those whose labels meet a filter, as one atomic batch.
  /// - Returns: how many there were.
  @discardableResult
  public func clear(
    labels: LabelFilter = .everything, durability: Durability? = nil
  ) async throws(TidemarkError) -> Int {
    try await store.clear(prefix: core.prefix, labels: labels, durability: durability)
  }

  /// Takes the last change of an object back, by a new entry: it is as it was before. After a put
  /// that made the object it is gone, and after a delete it is there again; so that to undo twice
  /// is to redo.
  /// - Returns: the object as it is now; nil when it is gone.
  /// - Throws: `historyGone` when the version before is no longer kept; `conflict` when the object
  ///   was written meanwhile.
  @discardableResult
  public func undo(_ id: ID, durability: Durability? = nil) async throws(TidemarkError) -> Object? {
    let key = try core.key(id)
    let view = try store.engine.reader.view()
    var walk = try VersionWalk(store.engine.reader, ofKey: key.rawSpan, upTo: view.sequence)
    guard let newest = try walk.next() else { return nil }
    let now = try store.engine.reader.info(newest)
    let isThere = now.kind == .put || now.kind == .touch
    let condition: WriteCondition = isThere ? .sequence(now.sequence) : .absent
    var batch = WriteBatch()
    let before = try walk.next().map(store.engine.reader.info)
    guard before != nil || now.previous == 0 && isThere else {
      throw TidemarkError(
        .historyGone, "the version before is no longer kept",
        object: ObjectPlace(collection: name, id: "\(id)"))
    }
    if let before, before.kind == .put || before.kind == .touch {
      try store.engine.reader.withValue(of: before.valueSequence) {
        (value, _) throws(TidemarkError) in
        try batch.putBack(key: key, value, info: before, if: condition)
      }
    } else {
      try batch.delete(key, if: condition)
    }
    try await store.write(batch, durability: durability)
    return try get(id)
  }

  nonisolated(nonsending) private func retrying<Result, Failure: Error>(
    _ body: nonisolated(nonsending) () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    for _ in 1..<Self.attempts {
      do { return try await body() } catch {
        guard (error as? TidemarkError)?.code == .conflict else { throw error }
      }
    }
    return try await body()
  }
}
