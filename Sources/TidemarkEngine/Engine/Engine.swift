/// The database, synchronous: bytes to state. It wires the owners of the state of a store, and does
/// what takes more than one of them.
package final class Engine: StateOwner {
  package let store: StoreContext
  package let reader: Reader
  package let writer: LogWriter
  package let checkpointer: Checkpointer
  package let compactor: Compactor
  package let autoCompactor: AutoCompactor
  package let attachments: AttachmentFiles
  /// The file system of `store`.
  let files: ClosableFileSystem
  let listener = OnceReference<CommitListener>()
  /// Held while a reader beside a writer takes up what that one has done.
  let refreshing = Lock(())
  /// Held while the store is closed, suspended or resumed.
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

  /// Sets who hears of commits, once.
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
    // A crash may leave files of runs behind; the next opening removes them only if unclean.
    try compactor.markUnclean()
    try checkpointer.rebuild()
  }

  /// Draws a new replica id: for a store that turns out to be a copy of another, so that the
  /// operations of both stay apart from here on.
  package func changeReplica() throws(TidemarkError) {
    let replica = environment.randomBytes(16)
    try writer.changeManifest { manifest in
      manifest.replicaID = replica
      return true
    }
  }
}
