public import TidemarkEngine

extension ObjectCollection {
  /// An object, as it changes: at once, then whenever it is written; nil while there is none.
  ///
  /// ```swift
  /// for try await note in notes.values(for: "1") { show(note) }
  /// ```
  /// - Parameters:
  ///   - id: the object's id.
  ///   - interval: the least time between two values.
  ///   - unreadable: is told when the object cannot be read, and the next value is waited for;
  ///     where nothing is given, the sequence ends with the error.
  public func values(
    for id: ID, minimumInterval interval: Duration = .zero,
    unreadable: (@Sendable (TidemarkError) -> Void)? = nil
  ) -> Observed<Object?> {
    Observed(store: store, interval: interval) { [core] in
      ReadableWatcher(watcher: ObjectWatcher(core, id), unreadable: unreadable)
    }
  }

  /// An object as it changes, or why it cannot be read.
  func results(for id: ID) -> Observed<Result<Object?, TidemarkError>> {
    Observed(store: store, interval: .zero) { [core] in ObjectWatcher(core, id) }
  }

  /// The objects that meet a condition, as they change: the whole list at once, then the new one
  /// with the difference, whenever it is another.
  ///
  /// ```swift
  /// for try await list in notes.observe(\.isDone == false, sort: [.descending(\.time)]) {
  ///   for note in list { show(note) }
  /// }
  /// ```
  /// Commits that come while a list is dealt with make one new list. One change in a long list
  /// costs a look at the object that has changed. Objects that cannot be read end nothing: see
  /// ``ObjectList/unreadable``.
  /// - Parameters:
  ///   - condition: the condition, which indexes must have.
  ///   - order: what they are sorted by.
  ///   - limit: most objects.
  ///   - interval: the least time between two lists.
  public func observe(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil, minimumInterval interval: Duration = .zero
  ) -> Observed<ObjectList<Object, ID>> {
    Observed(store: store, interval: interval) { [core] in
      ListWatcher(core, condition, order, limit)
    }
  }

  /// How many objects meet a condition, as that changes.
  /// - Parameters:
  ///   - condition: the condition, which indexes must have.
  ///   - interval: the least time between two counts.
  ///   - unreadable: is told at each count of objects that cannot be read, which may be missing in
  ///     it; where nothing is given, the sequence ends with the first one's error.
  public func observeCount(
    where condition: ObjectCondition<Object> = .everything,
    minimumInterval interval: Duration = .zero,
    unreadable: (@Sendable (TidemarkError) -> Void)? = nil
  ) -> Observed<Int> {
    Observed(store: store, interval: interval) { [self] in
      ValueWatcher(store.hub.watch(prefix: core.prefix)) {
        try self.count(where: condition, unreadable: unreadable)
      }
    }
  }
}
