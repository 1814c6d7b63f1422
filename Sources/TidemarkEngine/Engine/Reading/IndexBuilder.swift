/// Makes the index, at an opening or after damage: from the sorted runs on disk that are
/// usable, and from the entry headers ("heads") of the log that came after them. Each run covers a
/// range of sequences, from the end of the run beneath on; the newest that has a key decides.
struct IndexBuilder {
  struct Built {
    var index: Index
    /// Superseded bytes by segment.
    var usage: SpaceUsage
    /// Damage may have hidden entries below this sequence from the index; 0 for none.
    var uncertainBelow: UInt64 = 0
  }

  let path: String
  let environment: EngineEnvironment
  let keys: KeyRing
  let manifest: Manifest
  let segments: [Segment]
  let lastSequence: UInt64

  /// - Parameters:
  ///   - active: the frames of the last segment, if recovery has decoded them; nil reads them here.
  ///   - salvage: whether to leave damaged parts of the log out; else they throw.
  ///   - ignoresRuns: whether to use the log alone, since a run was found damaged.
  func build(
    active: [DecodedFront]?, salvage: Bool, ignoresRuns: Bool = false
  ) throws(TidemarkError) -> Built {
    var runs = ignoresRuns ? [] : try openRuns()
    while true {
      // Compaction has dropped tombstones up to `droppedThrough` from the log. Runs that end before
      // may have a key that such a tombstone deleted, and nothing in the log would take it back.
      if runs.last?.header.sequence ?? 0 < manifest.droppedThrough { runs = [] }
      var built = Built(
        index: Index(runs: RunList(runs.reversed()), seed: manifest.hashSeed), usage: SpaceUsage())
      do throws(IndexOrStoreError) {
        if let newest = runs.last {
          do throws(IndexError) {
            let info = try newest.userInfo()
            do throws(FormatError) { built.usage = try SpaceUsage(decoding: info.rawSpan) } catch {
              throw .runInvalid(error)
            }
          } catch { throw .index(error) }
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
          // Which run is damaged is not known: try without the newest. The log alone always does.
          runs.removeLast()
        }
      }
    }
  }

  /// The runs that MANIFEST lists, oldest first, up to the first that is unusable.
  private func openRuns() throws(TidemarkError) -> [SortedRun] {
    var runs: [SortedRun] = []
    // A run beyond the log's end has entries that were lost, whose sequences are given out again.
    for row in manifest.runs where row.sequence <= lastSequence {
      guard let run = try open(row), run.header.base == runs.last?.header.sequence ?? 0 else {
        break
      }
      runs.append(run)
    }
    return runs
  }

  private func open(_ row: Manifest.SortedRun) throws(TidemarkError) -> SortedRun? {
    let name = path + "/" + StoreLayout.indexDirectory + "/" + row.fileName
    let file: any File
    do { file = try environment.fileSystem.open(name, .read) } catch {
      if error.number == ErrorNumber.noEntry || error.isUnreadable { return nil }
      throw TidemarkError(error, while: "opening the index")
    }
    guard let run = try? keys.run(file), run.header.storeID == manifest.storeID,
      run.header.runID == row.id, run.header.sequence == row.sequence,
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
    // Segments without a count stay so, unless all their entries are applied here.
    let ids = Set(segments.map(\.id))
    built.usage.rows = built.usage.rows.filter { ids.contains($0.key) }
    for segment in segments where segment.firstSequence > covered {
      built.usage.rows[segment.id] = built.usage.rows[segment.id] ?? SpaceUsage.Row()
    }
    let unwalked = active == nil ? segments[...] : segments.dropLast()
    for segment in unwalked where segment.lastSequence > covered {
      do {
        // Reads by 64 KiB: many small frames at once, and little more than the heads of large ones.
        let frames = try FrameReader(segment, windowBytes: Limits.replayWindowBytes)
        for record in try segment.frames() {
          // Sequences of appended segments are dense: this frame ends at or below `covered`.
          if segment.kind == .appended,
            segment.firstSequence + UInt64(record.firstSlot) + UInt64(record.entryCount)
              <= covered + 1
          {
            continue
          }
          try apply(try frames.front(record), after: covered, to: &built)
        }
      } catch let error as TidemarkError {
        // The rest of the segment is left out too, so any entry up to its end may be missing.
        guard salvage, error.code == .damaged else { throw .store(error) }
        built.uncertainBelow = max(built.uncertainBelow, segment.lastSequence + 1)
      } catch let error as IndexError {
        throw .index(error)
      } catch { throw .store(TidemarkError(.inputOutput, "the log cannot be read", cause: error)) }
    }
    do {
      for front in active ?? [] { try apply(front, after: covered, to: &built) }
    } catch { throw .index(error) }
  }

  /// Applies the entries of one frame that are not in the runs to the index, and counts what they
  /// supersede. Frames come so that the sequences of each key ascend: the last entry that is
  /// applied is the newest.
  private func apply(
    _ front: DecodedFront, after covered: UInt64, to built: inout Built
  ) throws(IndexError) {
    let index = built.index
    var sets: [Int: UInt32] = [:]
    for entry in front.entries where entry.sequence > covered && entry.kind != .record {
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
        // The slot goes on to tell the size of the put's value, which the touch renews.
        guard let present = try index.lookup(key, hash: hash), !present.isDeleted else { continue }
        slot.labelSet = present.labelSet
        slot.size = present.size
        slot.size.isTouched = true
      case .evict where front.isCached(entry):
        // Where the cached value hid the user's own, the slot says deleted: it goes on to hide it.
        slot.size = try index.lookup(key, hash: hash)?.size.afterEviction ?? .evicted
        built.usage.noteEviction(ofKey: entry.keyLength, in: segments.covering(entry.sequence))
      case .delete, .evict:
        slot.size = .deleted
      case .record: continue
      }
      let previous = try index.upsert(key, hash: hash, slot)
      if let previous, !previous.isDeleted {
        built.usage.supersede(previous, in: segments.covering(previous.sequence))
      }
    }
  }
}
