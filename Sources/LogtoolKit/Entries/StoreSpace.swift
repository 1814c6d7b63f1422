internal import Tidemark
internal import TidemarkEngine

/// The part of a store's space that no figure of its engine tells.
struct StoreSpace {
  let attachments: AttachmentUsage
  /// Entries of caches, and their bytes before they are compressed.
  private(set) var cachedEntries = 0
  private(set) var cachedBytes = 0
  /// Nil where they cannot be told.
  let indexes: [IndexUsage]?
  let indexFailure: TidemarkError?

  init(_ store: Store) throws(TidemarkError) {
    attachments = try store.attachmentUsage()
    // The rest of a store is of interest also where a catalog of indexes is damaged.
    do {
      (indexes, indexFailure) = (try store.indexUsage(), nil)
    } catch {
      (indexes, indexFailure) = (nil, error)
    }
    for cache in try store.knownCaches() {
      cachedEntries += cache.status.entries
      cachedBytes += cache.status.bytes
    }
  }
}
