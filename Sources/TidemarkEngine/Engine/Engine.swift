/// The database, synchronous: bytes to state. It connects the owners of a store's state, and does
/// what takes more than one of them. Any thread may call it; each owner has locks of its own.
package final class Engine: StateOwner {
  package let store: StoreContext
  package let reader: Reader
  package let writer: LogWriter
  package let checkpointer: Checkpointer
  package let compactor: Compactor
  package let autoCompactor: AutoCompactor
  package let attachments: AttachmentFiles
  /// The file system of `store`, which can close all of the store's files at once.
  let files: ClosableFileSystem
  let listener = OnceReference<CommitListener>()
  /// Held while the log is read anew: by `refresh`, and (taken after `lifecycle`) by `resume`.
  let refreshing = Lock(())
  /// Held while the store is closed, suspended or resumed, so that one of these runs at a time.
  let lifecycle = Lock(())

  init(_ store: StoreContext, files: ClosableFileSystem, _ opened: Opened) {
    self.store = store
    self.files = files
    attachments = AttachmentFiles(
      store.environment.fileSystem, store: store.path, keys: store.keys,
      random: store.environment.randomBytes)
    reader = Reader(store, opened)
    writer = LogWriter(store, opened, reader: reader)
    checkpointer = Checkpointer(reader, writer)
    compactor = Compactor(
      reader, writer, checkpointer, attachments,
      isAutomatic: store.configuration.compactsByItself && opened.canWrite)
    autoCompactor = AutoCompactor(compactor)
  }

  /// Calls `body` after every change of the durable or the visible sequence.
  /// - Returns: what to pass to `stopObserving`.
  package func observe(_ body: @escaping @Sendable () -> Void) -> Int {
    store.observers.observe(body)
  }

  package func stopObserving(_ token: Int) { store.observers.stopObserving(token) }

  /// Sets who hears of the keys of commits; a second call does nothing.
  package func listen(with listener: CommitListener) { _ = self.listener.set(listener) }

  /// Changes how much history is kept.
  package func setRetention(_ retention: Retention) throws(TidemarkError) {
    try writer.changeManifest { manifest in
      manifest.retention = retention
      return true
    }
  }

  /// Rebuilds the index from the log alone and writes it as one run in the place of all others.
  package func reindex() throws(TidemarkError) {
    // Files are written from here on, as after a first put: MANIFEST must not say "closed cleanly".
    try compactor.markUnclean()
    try checkpointer.rebuild()
  }

  /// Draws a new replica id, for a store that is found to be a copy of another one: operation ids
  /// hold the replica's, so that those of both stay apart from here on.
  package func changeReplica() throws(TidemarkError) {
    let replica = environment.randomBytes(16)
    try writer.changeManifest { manifest in
      manifest.replicaID = replica
      return true
    }
  }
}
