public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

extension Store {
  /// The peer's name for a key: the id that a back end has given it; see `RequestPeer`.
  /// - Parameters:
  ///   - key: the key.
  ///   - name: of the peer.
  /// - Returns: nil where the peer has given none, or has none any more.
  public func alias(
    forKey key: some BytesConvertible & Sendable, at name: String
  ) async throws(TidemarkError) -> Alias? {
    try await onSyncThread { try $0.alias(forKey: key, at: name) }
  }

  /// The key that a peer calls so.
  /// - Parameters:
  ///   - alias: the id that a back end has given it.
  ///   - name: of the peer.
  /// - Returns: nil where no key here is called so.
  public func key(forAlias alias: Alias, at name: String) async throws(TidemarkError) -> Key? {
    try await onSyncThread { try $0.key(forAlias: alias, at: name) }
  }
}

extension Store.Blocking {
  /// The peer's name for a key; see ``Tidemark/Store/alias(forKey:at:)``.
  public func alias(
    forKey key: some BytesConvertible, at name: String
  ) throws(TidemarkError) -> Alias? {
    let bytes = key.withBytes { [UInt8](copying: $0) }
    return try ask(name) { try $0.session().knownAliases().alias(ofKey: bytes) }
  }

  /// The key that a peer calls so; see ``Tidemark/Store/key(forAlias:at:)``.
  public func key(forAlias alias: Alias, at name: String) throws(TidemarkError) -> Key? {
    try ask(name) { try $0.session().knownAliases().key(ofAlias: alias) }
  }
}
