internal import TidemarkEngine

/// The way of a reader with objects that cannot be read: it goes on with the others and tells
/// somebody, or fails with the first of them. It never leaves one out without a word.
struct UnreadableObjects {
  /// Is told of each; nil where the first is an error.
  let told: ((TidemarkError) -> Void)?

  static var fail: UnreadableObjects { UnreadableObjects(told: nil) }

  func tell(_ error: TidemarkError) throws(TidemarkError) {
    guard error.code == .coding, let told else { throw error }
    told(error)
  }

  /// An object; nil where it cannot be read.
  /// - Parameter isKnown: whether it was told of already.
  func readable<Object>(
    unless isKnown: Bool = false, _ read: () throws(TidemarkError) -> Object?
  ) throws(TidemarkError) -> Object? {
    do { return try read() } catch {
      if error.code == .coding, isKnown { return nil }
      try tell(error)
      return nil
    }
  }

  /// The object of an answer in its box, out of which to copy it takes longer than all else; nil
  /// where there is none, or it cannot be read.
  /// - Parameter isKnown: whether it was told of already.
  @inline(__always)
  func box<Object, ID>(
    _ answer: ObjectFetch.Answer, of core: CollectionCore<Object, ID>, unless isKnown: Bool = false
  ) throws(TidemarkError) -> ObjectBox<Object>? {
    switch answer {
    case .object(let row): return row.box as? ObjectBox<Object>
    case .absent: return nil
    case .failed(let error):
      if error.code != .coding || !isKnown { try tell(error) }
      return nil
    }
  }
}

extension CollectionCore {
  /// The id that the end of a key is.
  /// - Throws: `coding`.
  func id(ofObject bytes: ArraySlice<UInt8>) throws(TidemarkError) -> ID {
    guard let id = ID.id(ofKeyBytes: bytes), id.keyBytes.elementsEqual(bytes) else {
      throw TidemarkError(
        .coding, "the object cannot be read: its key ends with no id of the collection",
        object: codec.place(bytes))
    }
    return id
  }

  /// The reason why an object is in no index.
  func unindexed(_ id: [UInt8], in view: EngineView) throws(TidemarkError) -> TidemarkError {
    let place = codec.place(id[...])
    do {
      if let box = try UnreadableObjects.fail.box(fetch(view).fetch([id])[0], of: self) {
        _ = try knownRows(of: box.object, id: id[...])
      }
    } catch {
      // A term that is too long is a limit, and the object is left out like one that is no JSON.
      return error.code == .limitExceeded
        ? TidemarkError(.coding, error.message, object: place, cause: error) : error
    }
    return TidemarkError(
      .coding, "the object is in no index: a program wrote it that does not know them",
      object: place)
  }
}
