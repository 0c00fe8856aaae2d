"""Files of checkpoints: what is removed, and what is not."""

import os

from elastane import files


def test_a_folder_of_any_depth_is_removed_and_what_links_lead_to_stays(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    folder = tmp_path / "folder"
    for inner in ["a/b/c", "wide/1", "wide/2"]:
        (folder / inner).mkdir(parents=True)
        (folder / inner / "file").write_text("")
        (folder / inner / "link").symlink_to(outside)
    # Deeper than Python recurses, and than a path can name.
    at = os.open(folder / "a", os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.close(at)
    files.remove(str(folder))
    assert sorted(os.listdir(tmp_path)) == ["outside"]
    assert (outside / "kept").read_text() == "kept"
    files.remove(str(folder))  # it is absent

    (tmp_path / "link").symlink_to(outside)
    files.remove(str(tmp_path / "link"))
    assert (outside / "kept").read_text() == "kept"
