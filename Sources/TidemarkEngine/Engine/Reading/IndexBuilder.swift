/// Makes the index from the runs that serve and the heads that came after them.
struct IndexBuilder {
  struct Built {
    var index: Index
    var usage: SpaceUsage
    /// See `ReadState.staleBelow`.
    var staleBelow: UInt64 = 0
  }

  let path: String
  let environment: EngineEnvironment
  let keys: KeyRing
  let manifest: Manifest
  let segments: [Segment]
  let lastSequence: UInt64

  /// - Parameters:
  ///   - active: the frames of the last segment, if recovery has walked them; nil reads all
  ///     segments.
  ///   - salvage: whether to read around damage.
  ///   - ignoresRuns: whether runs were found damaged, so that the log alone is asked.
  func build(
    active: [DecodedFront]?, salvage: Bool, ignoresRuns: Bool = false
  ) throws(TidemarkError) -> Built {
    var runs = ignoresRuns ? [] : try openRuns()
    while true {
      // Runs serve from the oldest up to some newer one. If they end before a delete that was
      // dropped, they would bring the key back.
      if runs.last?.header.sequence ?? 0 < manifest.droppedThrough { runs = [] }
      var built = Built(
        index: Index(runs: RunList(runs.reversed()), seed: manifest.hashSeed), usage: SpaceUsage())
      do throws(IndexOrStoreError) {
        if let newest = runs.last {
          do {
            let info = try newest.userInfo()
            built.usage = try SpaceUsage(decoding: info.rawSpan)
          } catch let error as IndexError {
            throw .index(error)
          } catch let error as FormatError {
            throw .index(.imageInvalid(error))
          } catch { throw .index(newest.damage(.userInfo)) }
        }
        try replay(into: &built, active: active, salvage: salvage)
        return built
      } catch {
        switch error {
        case .store(let error): throw error
        case .index(let error):
          guard !runs.isEmpty else {
            throw TidemarkError(.limitExceeded, "the index cannot be made", cause: error)
          }
          // A damaged run is passed over: the log can always make the index anew.
          runs.removeLast()
        }
      }
    }
  }

  /// The runs that MANIFEST lists, oldest first, up to the first that cannot serve.
  private func openRuns() throws(TidemarkError) -> [Image] {
    var runs: [Image] = []
    // One newer than the log's end knows entries that were never durable.
    for row in manifest.images where row.sequence <= lastSequence {
      guard let run = try open(row), run.header.base == runs.last?.header.sequence ?? 0 else {
        break
      }
      runs.append(run)
    }
    return runs
  }

  private func open(_ row: Manifest.Image) throws(TidemarkError) -> Image? {
    let name = path + "/" + StoreLayout.indexDirectory + "/" + row.fileName
    let file: any File
    do { file = try environment.fileSystem.open(name, .read) } catch {
      if error.number == ErrorNumber.noEntry || error.isUnreadable { return nil }
      throw TidemarkError(error, while: "opening the index")
    }
    guard let run = try? keys.image(file), run.header.storeID == manifest.storeID,
      run.header.imageID == row.id, run.header.sequence == row.sequence,
      run.header.seed == manifest.hashSeed, run.header.seal?.keyID == row.keyID
    else {
      file.close()
      return nil
    }
    return run
  }

  private func replay(
    into built: inout Built, active: [DecodedFront]?, salvage: Bool
  ) throws(IndexOrStoreError) {
    let covered = built.index.runs.sequence
    var replayer = IndexReplayer(
      index: built.index, usage: built.usage, segments: segments, after: covered)
    // The segment that recovery has walked is the last one.
    let unwalked = active == nil ? segments[...] : segments.dropLast()
    for segment in unwalked where segment.lastSequence > covered {
      do {
        // Small frames come many at a time, and of large ones little besides their heads.
        let frames = try FrameReader(segment, windowBytes: Limits.replayWindowBytes)
        for record in try segment.frames() {
          if segment.kind == .appended,
            segment.firstSequence + UInt64(record.firstSlot) + UInt64(record.entryCount)
              <= covered + 1
          {
            continue
          }
          try replayer.apply(try frames.front(record))
        }
      } catch let error as TidemarkError {
        guard salvage, error.code == .damaged else { throw .store(error) }
        built.staleBelow = max(built.staleBelow, segment.lastSequence + 1)
      } catch let error as IndexError {
        throw .index(error)
      } catch { throw .store(TidemarkError(.inputOutput, "the log cannot be read", cause: error)) }
    }
    do {
      for front in active ?? [] { try replayer.apply(front) }
    } catch { throw .index(error) }
    built.usage = replayer.usage
  }
}

/// Applies heads to an index.
struct IndexReplayer {
  let index: Index
  private(set) var usage: SpaceUsage
  private let segments: [Segment]
  private let after: UInt64

  init(index: Index, usage: SpaceUsage, segments: [Segment], after: UInt64) {
    self.index = index
    self.segments = segments
    self.after = after
    // A compaction after the run was written has taken some of the segments that it counts.
    let ids = Set(segments.map(\.id))
    self.usage = usage
    self.usage.rows = usage.rows.filter { ids.contains($0.key) }
    for segment in segments where segment.firstSequence > after {
      self.usage.rows[segment.id] = self.usage.rows[segment.id] ?? SpaceUsage.Row()
    }
  }

  /// Applies the entries of one frame that the runs do not know yet.
  mutating func apply(_ front: DecodedFront) throws(IndexError) {
    var sets: [Int: UInt32] = [:]
    for entry in front.entries where entry.sequence > after && entry.kind != .record {
      let key = front.key(of: entry)
      let hash = index.hash(key)
      var slot = Slot(
        sequence: entry.sequence, labelSet: 0,
        size: .ofEntry(key: entry.keyLength, value: entry.valueLength))
      switch entry.kind {
      case .put:
        if front.isCached(entry) {
          slot.size = slot.size.cached(over: try index.lookup(key, hash: hash)?.size)
        }
        if entry.labelSet >= 0 {
          if let known = sets[entry.labelSet] {
            slot.labelSet = known
          } else {
            slot.labelSet = try index.labelTable.intern(front.labels(of: entry))
            sets[entry.labelSet] = slot.labelSet
          }
        }
      case .touch:
        guard let present = try index.lookup(key, hash: hash), !present.isDeleted else { continue }
        slot.labelSet = present.labelSet
        slot.size = present.size
        slot.size.isTouched = true
      case .evict where front.isCached(entry):
        slot.size = try index.lookup(key, hash: hash)?.size.afterEviction ?? .evicted
        usage.noteEviction(ofKey: entry.keyLength, in: segments.covering(entry.sequence))
      case .delete, .evict:
        slot.size = .deleted
      case .record: continue
      }
      let previous = try index.upsert(key, hash: hash, slot)
      if let previous, !previous.isDeleted {
        usage.supersede(previous, in: segments.covering(previous.sequence))
      }
    }
  }
}
