//! Images from files that are made here, and what is done to them.

use std::fs;
use std::path::{Path, PathBuf};

use super::augmentation::middle;
use super::mixing::Mix;
use super::*;
use crate::random;

/// A batch file of CIFAR-10's layout: record `i` has the label `i mod 10` and pixels of the value `i`.
fn batch(records: usize) -> Vec<u8> {
    (0..records)
        .flat_map(|i| {
            let mut record = vec![i as u8; 3073];
            record[0] = (i % 10) as u8;
            record
        })
        .collect()
}

/// A folder with all six files of CIFAR-10, of few records each.
fn cifar10(folder: &Path) {
    for n in 1..=5 {
        fs::write(folder.join(format!("data_batch_{n}.bin")), batch(20)).unwrap();
    }
    fs::write(folder.join("test_batch.bin"), batch(10)).unwrap();
}

#[test]
fn cifar10_is_read_from_its_folder_and_from_the_archives() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("cifar-10-batches-bin");
    fs::create_dir(&inner).unwrap();
    cifar10(&inner);
    for path in [folder.path(), &inner] {
        let images = Cifar10::training(path).unwrap();
        assert_eq!(images.len(), 100);
        assert_eq!(images.classes()[3], "cat");
        assert_eq!(
            (images.label(23), images.picture(23).unwrap().pixels()[0]),
            (3, 3)
        );
        assert!(images.name(23).starts_with("record 3 of ") && images.name(23).ends_with("data_batch_2.bin"));
        assert_eq!(Cifar10::test(path).unwrap().len(), 10);
    }
    fs::write(inner.join("batches.meta.txt"), "one\ntwo\n\n").unwrap();
    let error = Cifar10::test(folder.path()).unwrap_err();
    assert!(
        matches!(error, ImageError::ClassNames { found: 2, .. }),
        "{error}"
    );
    fs::remove_file(inner.join("data_batch_4.bin")).unwrap();
    let message = Cifar10::training(folder.path()).unwrap_err().to_string();
    assert!(message.contains("data_batch_4.bin"), "{message}");
}

#[test]
fn damaged_batches_say_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let mut bad_label = batch(20);
    bad_label[7 * 3073] = 10;
    for (name, bytes, words) in [
        (
            "cut.bin",
            batch(20)[..61_360].to_vec(),
            "after 19 records 2973 bytes are left",
        ),
        ("other.bin", vec![1; 20 * 3074], "CIFAR-100"),
        ("empty.bin", Vec::new(), "is empty"),
        ("label.bin", bad_label, "record 7 (byte 21511) has the label 10"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let message = Cifar10::files(&[path]).unwrap_err().to_string();
        assert!(message.contains(words) && message.contains(name), "{message}");
        assert!(!message.contains('\n'), "{message}");
    }
}

/// Real files, and real damage, where they are at hand.
#[test]
fn shared_batches() {
    let shared = std::env::var_os("WQK_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let folder = shared.join("data/cifar10/bad");
    if !folder.is_dir() {
        eprintln!("skipped: there is no {}", folder.display());
        return;
    }
    let good = Cifar10::files(&[folder.join("ok_20_records.bin")]).unwrap();
    assert_eq!(good.len(), 20);
    for name in [
        "cifar100_layout_3074.bin",
        "empty_batch.bin",
        "label_out_of_range.bin",
        "truncated_batch.bin",
    ] {
        let message = Cifar10::files(&[folder.join(name)]).unwrap_err().to_string();
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn class_folders_are_scaled_and_coloured() {
    let folder = tempfile::tempdir().unwrap();
    for class in ["b", "a"] {
        fs::create_dir(folder.path().join(class)).unwrap();
    }
    // Twice as wide as high, of one colour; and one that is grey.
    image::RgbImage::from_pixel(16, 8, image::Rgb([10, 20, 30]))
        .save(folder.path().join("a/wide.PNG"))
        .unwrap();
    image::GrayImage::from_pixel(4, 4, image::Luma([7]))
        .save(folder.path().join("b/grey.png"))
        .unwrap();
    fs::write(folder.path().join("b/notes.txt"), "not an image").unwrap();
    let images = ClassFolder::open(folder.path(), 4).unwrap();
    assert_eq!(images.classes(), ["a", "b"]);
    assert_eq!((images.len(), images.passed_over()), (2, 1));
    let wide = images.picture(0).unwrap();
    assert_eq!((wide.height(), wide.width()), (4, 8));
    assert_eq!(
        (wide.pixels()[0], wide.pixels()[32], wide.pixels()[64]),
        (10, 20, 30)
    );
    assert_eq!(images.label(1), 1);
    assert_eq!(images.picture(1).unwrap(), Picture::new(4, 4, vec![7; 48]));

    let whole = fs::read(folder.path().join("a/wide.PNG")).unwrap();
    fs::write(folder.path().join("a/wide.PNG"), &whole[..whole.len() / 2]).unwrap();
    let message = images.picture(0).unwrap_err().to_string();
    assert!(message.contains("wide.PNG"), "{message}");

    fs::create_dir(folder.path().join("c")).unwrap();
    let message = ClassFolder::open(folder.path(), 4).unwrap_err().to_string();
    assert!(message.contains("holds no JPEG or PNG files"), "{message}");
    let message = ClassFolder::open(folder.path().join("c"), 4)
        .unwrap_err()
        .to_string();
    assert!(message.contains("holds no folders"), "{message}");
}

#[test]
fn subsets_are_ranges_or_spread() {
    let folder = tempfile::tempdir().unwrap();
    cifar10(folder.path());
    let images = Cifar10::test(folder.path()).unwrap();
    let labels = |subset: Subset<'_>| (0..subset.len()).map(|i| subset.label(i)).collect::<Vec<_>>();
    assert_eq!(labels(Subset::new(&images, 7..20)), [7, 8, 9]);
    assert_eq!(labels(Subset::spread(&images, 4)), [0, 2, 5, 7]);
    assert_eq!(labels(Subset::spread(&images, 100)).len(), 10);
}

#[test]
fn crops_shift_and_mirror() {
    // Rows 0 1 2 / 3 4 5 / 6 7 8 in each colour.
    let picture = Picture::new(3, 3, [0, 1, 2, 3, 4, 5, 6, 7, 8].repeat(3));
    let crop = |top, left, flip| picture.crop(top, left, 2, flip).pixels()[8..].to_vec();
    assert_eq!(crop(1, 1, false), [4, 5, 7, 8]);
    assert_eq!(crop(1, 1, true), [5, 4, 8, 7]);
    assert_eq!(crop(-1, 2, false), [0, 0, 2, 0]);
    assert_eq!(middle(&picture, 1, String::new).unwrap().pixels(), [4, 4, 4]);
    let message = middle(&picture, 4, || "cat.png".to_owned())
        .unwrap_err()
        .to_string();
    assert!(message.contains("cat.png: 3 × 3 pixels"), "{message}");
}

/// A picture of 2 × 2 pixels that are all different shows where it was cut and whether it was mirrored.
#[test]
fn cuts_are_even_over_places_and_mirrors_over_images() {
    let picture = Picture::new(2, 2, (1..=4).flat_map(|pixel| [pixel; 3]).collect());
    let mirrored = picture.crop(0, 0, 2, true);
    let cuts = |augmentation: Augmentation| -> Vec<Picture> {
        let mut rng = random::stream(0, ["cuts"]);
        let cut = |_| augmentation.cut(&picture, 2, &mut rng, String::new).unwrap();
        (0..200).map(cut).collect()
    };
    assert!(cuts(Augmentation::none()).iter().all(|cut| *cut == picture));

    let flip = Augmentation {
        flip: true,
        ..Augmentation::none()
    };
    let n_mirrored = cuts(flip).iter().filter(|cut| **cut == mirrored).count();
    // 200 draws at 1/2: 100 with a deviation of 7.1, of which this is five.
    assert!((65..=135).contains(&n_mirrored), "{n_mirrored}");
    assert_eq!(
        n_mirrored + cuts(flip).iter().filter(|cut| **cut == picture).count(),
        200
    );

    // Padded by 1 there are 3 × 3 places; 200 draws miss one with a chance of 9 · (8/9)^200 = 5e-10.
    let pad = Augmentation {
        crop_padding: 1,
        ..Augmentation::none()
    };
    let mut places: Vec<Vec<u8>> = cuts(pad).iter().map(|cut| cut.pixels().to_vec()).collect();
    places.sort();
    places.dedup();
    assert_eq!(places.len(), 9);
}

#[test]
fn normalised_images_have_mean_0_and_deviation_1() {
    let folder = tempfile::tempdir().unwrap();
    cifar10(folder.path());
    let images = Cifar10::training(folder.path()).unwrap();
    let normalisation = Normalisation::of(&images).unwrap();
    // Pixels are 0 to 19, evenly: mean 9.5, variance (20² − 1)/12.
    let std = (399.0f64 / 12.0).sqrt() / 255.0;
    // f32 rounding of the result.
    assert!((f64::from(normalisation.mean[0]) - 9.5 / 255.0).abs() < 1e-8);
    assert!((f64::from(normalisation.std[2]) - std).abs() < 1e-8);
    let value = normalisation.apply(&images.picture(19).unwrap())[0];
    assert!((f64::from(value) - 9.5 / 255.0 / std).abs() < 1e-5, "{value}");
    // One colour everywhere cannot be normalised.
    assert!(Normalisation::of(&Subset::new(&images, 0..1)).is_err());
}

fn batches(images: &dyn Images, augmentation: Augmentation, batch: usize) -> ImageBatches<'_> {
    let normalisation = Normalisation {
        mean: [0.0; 3],
        std: [1.0 / 255.0; 3],
    };
    ImageBatches::new(images, augmentation, normalisation, 32, batch, 5).unwrap()
}

#[test]
fn every_image_once_an_epoch_and_any_step_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    cifar10(folder.path());
    let images = Cifar10::test(folder.path()).unwrap();
    let plain = batches(&images, Augmentation::none(), 4);
    assert_eq!(plain.per_epoch(), 3);
    let in_order: Vec<ImageBatch> = (0..10).map(|step| plain.batch(step).unwrap()).collect();
    let seen: Vec<usize> = in_order
        .iter()
        .flat_map(|batch| batch.pixels.chunks(3072).map(|image| image[0].round() as usize))
        .collect();
    for epoch in seen.chunks_exact(10) {
        let mut epoch = epoch.to_vec();
        epoch.sort_unstable();
        assert_eq!(epoch, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    }
    assert_ne!(seen[..10], seen[10..20]);

    let mixed = batches(&images, Augmentation::default(), 4);
    let in_order: Vec<ImageBatch> = (0..6).map(|step| mixed.batch(step).unwrap()).collect();
    for step in (0..6).rev() {
        assert_eq!(mixed.batch(step).unwrap(), in_order[step as usize]);
    }
}

#[test]
fn targets_are_probabilities_and_smoothed_as_defined() {
    let folder = tempfile::tempdir().unwrap();
    cifar10(folder.path());
    let images = Cifar10::test(folder.path()).unwrap();
    let smooth = Augmentation {
        label_smoothing: 0.1,
        ..Augmentation::none()
    };
    let batch = batches(&images, smooth, 5).batch(0).unwrap();
    for (target, &label) in batch.targets.chunks(10).zip(&batch.labels) {
        for (class, &p) in target.iter().enumerate() {
            // 1 − ε + ε/K and ε/K, to f32 rounding.
            let want = if class == label { 0.91 } else { 0.01 };
            assert!((p - want).abs() < 1e-6, "{p}");
        }
    }
    for step in 0..20 {
        let batch = batches(&images, Augmentation::default(), 5).batch(step).unwrap();
        for target in batch.targets.chunks(10) {
            assert!((target.iter().sum::<f32>() - 1.0).abs() < 1e-6);
            assert!(target.iter().all(|&p| p > 0.0));
        }
    }
}

#[test]
fn labels_are_mixed_as_the_pixels_are() {
    let (mut blends, mut boxes) = (Vec::new(), Vec::new());
    for i in 0..4000 {
        let mut rng = random::stream(3, ["mix", &i.to_string()]);
        let mix = Mix::draw(&Augmentation::default(), 32, &mut rng);
        let own_share = mix.own_share(32);
        // An image of ones takes in one of zeros: what is left is the share.
        let mut own = vec![1.0; 3072];
        mix.apply(&mut own, &[0.0; 3072], 32);
        let left = own.iter().sum::<f32>() / 3072.0;
        // A sum of 3072 f32 up to 1.
        assert!((left - own_share).abs() < 1e-4, "{mix:?}: {left} and {own_share}");
        match mix {
            Mix::Blend(_) => blends.push(f64::from(own_share)),
            Mix::Box { .. } => boxes.push(f64::from(own_share)),
            Mix::None => panic!("both are on"),
        }
    }
    // Even chances: 2000 ± 32; five deviations.
    assert!(blends.len().abs_diff(2000) < 160, "{}", blends.len());
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    let centre = mean(&blends);
    let variance = blends.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / blends.len() as f64;
    // Beta(α, α) has mean 1/2 and variance 1/(4(2α + 1)) = 0.1786 for α = 0.2. With 2000 draws five standard errors
    // are 0.047 and, its fourth central moment being below 1/16, below 0.02.
    assert!((centre - 0.5).abs() < 0.047, "{centre}");
    assert!((variance - 1.0 / 5.6).abs() < 0.02, "{variance}");
    // Boxes are cut off at the border, so that more than half of the own pixels is left.
    assert!(mean(&boxes) > 0.5 && mean(&boxes) < 0.75, "{}", mean(&boxes));
}

#[test]
fn settings_out_of_range_are_refused() {
    for (augmentation, field) in [
        (
            Augmentation {
                mixup: -1.0,
                ..Augmentation::none()
            },
            "mixup",
        ),
        (
            Augmentation {
                label_smoothing: 1.0,
                ..Augmentation::none()
            },
            "label_smoothing",
        ),
    ] {
        let message = augmentation.check().unwrap_err().to_string();
        assert!(message.contains(field), "{message}");
    }
}
