public import TidemarkEngine

extension ObjectCollection {
  /// Follows an object: delivers it at once, then each time it is written; nil while there is none.
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
  ) -> LiveValues<Object?> {
    LiveValues(store: store, interval: interval) { [core] in
      ReadableWatcher(watcher: ObjectWatcher(core, id), unreadable: unreadable)
    }
  }

  /// An object as it changes, or why it cannot be read.
  func results(for id: ID) -> LiveValues<Result<Object?, TidemarkError>> {
    LiveValues(store: store, interval: .zero) { [core] in ObjectWatcher(core, id) }
  }

  /// Follows the objects that meet a condition: delivers the whole list at once, then the new list
  /// with its changes each time it differs.
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
  ///   - condition: which objects to follow; an index must serve the condition.
  ///   - order: how each list is sorted.
  ///   - limit: the most objects in a list; nil for all.
  ///   - interval: the shortest time between two lists.
  public func observe(
    _ condition: ObjectCondition<Object> = .everything, sort order: [ObjectOrder<Object>] = [],
    limit: Int? = nil, minimumInterval interval: Duration = .zero
  ) -> LiveValues<ObjectList<Object, ID>> {
    LiveValues(store: store, interval: interval) { [core] in
      ListWatcher(core, condition, order, limit)
    }
  }

  /// Follows the number of objects that meet a condition: delivers it at once, then each time it
  /// changes.
  /// - Parameters:
  ///   - condition: which objects to count; an index must serve the condition.
  ///   - interval: the shortest time between two counts.
  ///   - unreadable: is told at each count of objects that cannot be read, which may be missing in
  ///     it; where nothing is given, the sequence ends with the first one's error.
  public func observeCount(
    where condition: ObjectCondition<Object> = .everything,
    minimumInterval interval: Duration = .zero,
    unreadable: (@Sendable (TidemarkError) -> Void)? = nil
  ) -> LiveValues<Int> {
    LiveValues(store: store, interval: interval) { [self] in
      ValueWatcher(store.hub.watch(prefix: core.prefix)) {
        try self.count(where: condition, unreadable: unreadable)
      }
    }
  }
}
