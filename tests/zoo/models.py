"""The tiny random models: one or more for each entry of the registry, with head layouts that tell mistakes apart.

Each is (folder, class, configuration, {stack: pattern of its attention modules in the library's own module tree},
inputs[, options]). The order of the modules within a stack is the order in which a forward pass calls them.
"""
import torch
import transformers as hf

N = 7        # positions of a text input
BATCH = 72   # independent inputs; at least the width of the widest stack, plus one


def ids(model, vocab=61, n=N):
    g = torch.Generator().manual_seed(1)
    return torch.randint(5, vocab, (BATCH, n), generator=g)


def text(**more):
    return lambda m: m(input_ids=ids(m), **more)


def causal(m):
    return m(input_ids=ids(m), use_cache=False)


def sequence_pair(m):
    return m(input_ids=ids(m), decoder_input_ids=ids(m, n=5), use_cache=False)


def pixels(size=16, channels=3, **more):
    g = torch.Generator().manual_seed(2)
    return lambda m: m(pixel_values=torch.rand(BATCH, channels, size, size, generator=g, dtype=m.dtype), **more)


def audio(m):
    g = torch.Generator().manual_seed(3)
    return m(torch.randn(BATCH, 100, generator=g, dtype=m.dtype))


V = dict(vocab_size=61, max_position_embeddings=32)
BERT = dict(**V, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40, pad_token_id=0)
DECODER = dict(**V, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40)
GROUPED = dict(**DECODER, num_key_value_heads=2)
EOS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)
VISION = dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40, image_size=16,
              patch_size=8, num_channels=3)
AUDIO = dict(vocab_size=32, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, intermediate_size=40,
             conv_dim=(16, 16), conv_stride=(5, 2), conv_kernel=(10, 3), num_feat_extract_layers=2,
             num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, feat_extract_norm="layer")
SEQ2SEQ = dict(**V, d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=6,
               decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40, **EOS)
BARTISH = {"encoder": r"encoder\.layers\.\d+\.self_attn$", "decoder": r"decoder\.layers\.\d+\.self_attn$"}
ENCODER = {"encoder": r"layer\.\d+\.attention\.self$"}
SELF = {"decoder": r"layers\.\d+\.self_attn$"}
HEADS_FIRST = {"decoder": r"\.h\.\d+\.(self_)?att(n|ention)(\.attention)?$"}
VIT = {"encoder": r"layers?\.\d+\.attention(\.attention)?$"}
SPEECH = {"encoder": r"layers\.\d+\.attention$"}
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16, beta_fast=4.0)


def longrope(pairs):
    return dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0 + 0.1 * i for i in range(pairs)],
                long_factor=[2.0 + 0.5 * i for i in range(pairs)], original_max_position_embeddings=32)


def small_swin():
    return hf.SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[1, 1, 1, 1], num_heads=[1, 1, 1, 1],
                         window_size=2, out_features=["stage1", "stage2", "stage3", "stage4"])


def small_resnet():
    return hf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], out_features=["stage4"])


def tower(**k):
    return dict(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40, image_size=16,
                patch_size=8, **k)


MODELS = [
    # ---- text encoders
    ("bert", hf.BertForMaskedLM, hf.BertConfig(**BERT), ENCODER, text()),
    ("roberta", hf.RobertaForMaskedLM, hf.RobertaConfig(**BERT), ENCODER, text()),
    ("xlm-roberta", hf.XLMRobertaModel, hf.XLMRobertaConfig(**BERT), ENCODER, text()),
    ("electra", hf.ElectraForPreTraining, hf.ElectraConfig(**BERT, embedding_size=24), ENCODER, text()),
    ("distilbert", hf.DistilBertForMaskedLM,
     hf.DistilBertConfig(**V, dim=48, n_layers=2, n_heads=6, hidden_dim=40), {"encoder": r"layer\.\d+\.attention$"}, text()),
    ("albert", hf.AlbertForMaskedLM,
     hf.AlbertConfig(**{**BERT, "num_hidden_layers": 4}, embedding_size=24, num_hidden_groups=2, inner_group_num=2),
     {"encoder": r"albert_layers\.\d+\.attention$"}, text()),
    ("mpnet", hf.MPNetForMaskedLM, hf.MPNetConfig(**{**BERT, "pad_token_id": 1}), {"encoder": r"attention\.attn$"}, text()),
    ("modernbert", hf.ModernBertForMaskedLM,
     hf.ModernBertConfig(**{**BERT, "num_hidden_layers": 4}, **{k: v for k, v in EOS.items() if k != "pad_token_id"},
                         cls_token_id=1, sep_token_id=2, global_attn_every_n_layers=3),
     {"encoder": r"layers\.\d+\.attn$"}, text()),
    ("deberta", hf.DebertaForMaskedLM,
     hf.DebertaConfig(**BERT, relative_attention=True, max_relative_positions=8, pos_att_type=["c2p", "p2c"], type_vocab_size=0),
     ENCODER, text()),
    ("deberta-v2", hf.DebertaV2ForMaskedLM,
     hf.DebertaV2Config(**BERT, relative_attention=True, max_relative_positions=8, pos_att_type=["c2p", "p2c"],
                        share_att_key=True, type_vocab_size=0, position_buckets=4, norm_rel_ebd="layer_norm"), ENCODER, text()),
    ("esm", hf.EsmForMaskedLM,
     hf.EsmConfig(**BERT, position_embedding_type="rotary", mask_token_id=4, token_dropout=False), ENCODER, text(), ["offsets"]),
    ("nomic-bert", hf.NomicBertModel, hf.NomicBertConfig(**BERT), {"encoder": r"layers\.\d+\.(self_attn|attn)$"}, text(), ["offsets"]),
    # ---- text decoders
    ("gpt1", hf.OpenAIGPTLMHeadModel, hf.OpenAIGPTConfig(vocab_size=61, n_positions=32, n_embd=48, n_layer=2, n_head=6),
     HEADS_FIRST, text()),
    ("gpt2", hf.GPT2LMHeadModel, hf.GPT2Config(vocab_size=61, n_positions=32, n_embd=48, n_layer=2, n_head=6), HEADS_FIRST, causal),
    ("gpt2-bare", hf.GPT2Model, hf.GPT2Config(vocab_size=61, n_positions=32, n_embd=40, n_layer=2, n_head=4),
     {"decoder": r"^h\.\d+\.attn$"}, causal),
    ("gpt-neo", hf.GPTNeoForCausalLM,
     hf.GPTNeoConfig(**V, hidden_size=48, num_layers=2, num_heads=6, attention_types=[[["global", "local"], 1]], intermediate_size=40),
     {"decoder": r"attn\.attention$"}, causal),
    ("gptj", hf.GPTJForCausalLM,
     hf.GPTJConfig(vocab_size=61, n_positions=32, n_embd=48, n_layer=2, n_head=4, rotary_dim=8, n_inner=40), HEADS_FIRST, causal, ["offsets"]),
    ("gpt-neox", hf.GPTNeoXForCausalLM, hf.GPTNeoXConfig(**{**DECODER, "num_attention_heads": 4}, rotary_pct=0.5),
     {"decoder": r"layers\.\d+\.attention$"}, causal, ["offsets"]),
    ("opt", hf.OPTForCausalLM,
     hf.OPTConfig(**V, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, ffn_dim=40, word_embed_proj_dim=48), SELF, causal),
    ("opt-post-norm", hf.OPTForCausalLM,
     hf.OPTConfig(**V, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, ffn_dim=40, word_embed_proj_dim=24,
                  do_layer_norm_before=False), SELF, causal),
    ("bloom", hf.BloomForCausalLM, hf.BloomConfig(vocab_size=61, hidden_size=48, n_layer=2, n_head=6), HEADS_FIRST, causal),
    ("mpt", hf.MptForCausalLM, hf.MptConfig(vocab_size=61, d_model=48, n_layers=2, n_heads=6, max_seq_len=32, expansion_ratio=2),
     {"decoder": r"blocks\.\d+\.attn$"}, causal),
    ("falcon-mqa", hf.FalconForCausalLM,
     hf.FalconConfig(vocab_size=61, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, multi_query=True), HEADS_FIRST, causal, ["offsets"]),
    ("falcon-grouped", hf.FalconForCausalLM,
     hf.FalconConfig(vocab_size=61, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, num_kv_heads=2,
                     new_decoder_architecture=True), HEADS_FIRST, causal, ["offsets"]),
    ("falcon-multi", hf.FalconForCausalLM,
     hf.FalconConfig(vocab_size=61, hidden_size=48, num_hidden_layers=2, num_attention_heads=6, multi_query=False, alibi=True,
                     bias=True, parallel_attn=False), HEADS_FIRST, causal),
    ("gpt-bigcode-mqa", hf.GPTBigCodeForCausalLM,
     hf.GPTBigCodeConfig(vocab_size=61, n_positions=32, n_embd=48, n_layer=2, n_head=6, multi_query=True), HEADS_FIRST, causal),
    ("gpt-bigcode-multi", hf.GPTBigCodeForCausalLM,
     hf.GPTBigCodeConfig(vocab_size=61, n_positions=32, n_embd=48, n_layer=2, n_head=6, multi_query=False), HEADS_FIRST, causal),
    ("starcoder2", hf.Starcoder2ForCausalLM, hf.Starcoder2Config(**GROUPED), SELF, causal, ["offsets"]),
    ("llama-multi", hf.LlamaForCausalLM, hf.LlamaConfig(**DECODER, attention_bias=True, rope_parameters=LLAMA3), SELF, causal, ["offsets"]),
    ("llama-grouped", hf.LlamaForCausalLM, hf.LlamaConfig(**GROUPED, head_dim=12, tie_word_embeddings=True), SELF, causal, ["offsets", "bf16"]),
    ("llama-linear", hf.LlamaModel,
     hf.LlamaConfig(**GROUPED, rope_parameters=dict(rope_type="linear", rope_theta=500.0, factor=4.0)), SELF, causal, ["offsets"]),
    ("llama-dynamic", hf.LlamaModel,
     hf.LlamaConfig(**GROUPED, rope_parameters=dict(rope_type="dynamic", rope_theta=500.0, factor=4.0)), SELF, causal, ["offsets"]),
    ("llama-yarn", hf.LlamaModel, hf.LlamaConfig(**GROUPED, rope_parameters=YARN), SELF, causal, ["offsets"]),
    ("mistral", hf.MistralForCausalLM, hf.MistralConfig(**GROUPED, sliding_window=4), SELF, causal, ["offsets", "f16"]),
    ("mixtral", hf.MixtralForCausalLM, hf.MixtralConfig(**GROUPED, num_local_experts=2, num_experts_per_tok=1), SELF, causal, ["offsets", "single"]),
    ("qwen2", hf.Qwen2ForCausalLM, hf.Qwen2Config(**GROUPED), SELF, causal, ["offsets"]),
    ("qwen3", hf.Qwen3ForCausalLM, hf.Qwen3Config(**GROUPED, head_dim=12), SELF, causal, ["offsets"]),
    ("gemma", hf.GemmaForCausalLM, hf.GemmaConfig(**{**GROUPED, "num_key_value_heads": 1}, head_dim=16), SELF, causal, ["offsets"]),
    ("gemma2", hf.Gemma2ForCausalLM, hf.Gemma2Config(**GROUPED, head_dim=16, query_pre_attn_scalar=16), SELF, causal, ["offsets"]),
    ("gemma3-text", hf.Gemma3ForCausalLM,
     hf.Gemma3TextConfig(**{**GROUPED, "num_hidden_layers": 3}, head_dim=16, sliding_window=4,
                         layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                         rope_parameters={"full_attention": dict(rope_type="linear", factor=8.0, rope_theta=1e6),
                                          "sliding_attention": dict(rope_type="default", rope_theta=1e4)}), SELF, causal, ["offsets"]),
    ("gemma3", hf.Gemma3ForConditionalGeneration,
     hf.Gemma3Config(text_config=hf.Gemma3TextConfig(**GROUPED, head_dim=16), vision_config=hf.SiglipVisionConfig(**tower()),
                     mm_tokens_per_image=4, image_token_index=60, boi_token_index=58, eoi_token_index=59),
     {"text": r"language_model\.layers\.\d+\.self_attn$", "vision": r"encoder\.layers\.\d+\.self_attn$"}, "gemma3"),
    ("phi", hf.PhiForCausalLM, hf.PhiConfig(**DECODER, partial_rotary_factor=0.5, qk_layernorm=True), SELF, causal, ["offsets"]),
    ("phi-plain", hf.PhiForCausalLM, hf.PhiConfig(**DECODER, partial_rotary_factor=0.5), SELF, causal, ["offsets"]),
    ("phi3", hf.Phi3ForCausalLM, hf.Phi3Config(**DECODER, **EOS), SELF, causal, ["offsets"]),
    ("phi3-grouped", hf.Phi3ForCausalLM,
     hf.Phi3Config(**GROUPED, **EOS, partial_rotary_factor=0.5,
                   rope_parameters=dict(**longrope(2), partial_rotary_factor=0.5)), SELF, causal, ["offsets"]),
    ("phi3-longrope", hf.Phi3ForCausalLM,
     hf.Phi3Config(**{**GROUPED, "max_position_embeddings": 64}, **EOS, partial_rotary_factor=0.5,
                   rope_parameters=dict(**longrope(2), partial_rotary_factor=0.5)), SELF, causal, ["offsets", "scaled"]),
    ("olmo2", hf.Olmo2ForCausalLM, hf.Olmo2Config(**GROUPED, **EOS), SELF, causal, ["offsets"]),
    ("deepseek-v2", hf.DeepseekV2ForCausalLM,
     hf.DeepseekV2Config(**DECODER, num_key_value_heads=6, kv_lora_rank=20, q_lora_rank=24, qk_nope_head_dim=8,
                         qk_rope_head_dim=4, v_head_dim=6, first_k_dense_replace=2), SELF, causal, ["offsets"]),
    ("deepseek-v2-lite", hf.DeepseekV2ForCausalLM,
     hf.DeepseekV2Config(**DECODER, num_key_value_heads=6, kv_lora_rank=20, q_lora_rank=None, qk_nope_head_dim=8,
                         qk_rope_head_dim=4, v_head_dim=6, first_k_dense_replace=2), SELF, causal, ["offsets"]),
    ("deepseek-v3", hf.DeepseekV3ForCausalLM,
     hf.DeepseekV3Config(**DECODER, num_key_value_heads=6, kv_lora_rank=20, q_lora_rank=24, qk_nope_head_dim=8,
                         qk_rope_head_dim=4, v_head_dim=6, first_k_dense_replace=2, n_routed_experts=4, n_group=1, topk_group=1,
                         num_experts_per_tok=2, moe_intermediate_size=16,
                         rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, mscale=1.0, mscale_all_dim=1.0,
                                              original_max_position_embeddings=16)), SELF, causal, ["offsets"]),
    ("olmo", hf.OlmoForCausalLM, hf.OlmoConfig(**GROUPED, **EOS), SELF, causal, ["offsets"]),
    ("persimmon", hf.PersimmonForCausalLM, hf.PersimmonConfig(**{**DECODER, "num_attention_heads": 4}, partial_rotary_factor=0.5, qk_layernorm=True),
     SELF, causal, ["offsets"]),
    ("cohere", hf.CohereForCausalLM, hf.CohereConfig(**GROUPED, **EOS, use_qk_norm=True), SELF, causal, ["offsets"]),
    ("glm", hf.GlmForCausalLM, hf.GlmConfig(**GROUPED, head_dim=8, **EOS, partial_rotary_factor=0.5), SELF, causal, ["offsets"]),
    ("xglm", hf.XGLMForCausalLM, hf.XGLMConfig(**V, d_model=48, num_layers=2, attention_heads=6, ffn_dim=40, **EOS), SELF, causal, ["single"]),
    # ---- encoder-decoders
    ("t5", hf.T5ForConditionalGeneration,
     hf.T5Config(vocab_size=61, d_model=48, d_kv=10, d_ff=40, num_layers=2, num_decoder_layers=3, num_heads=6, decoder_start_token_id=0),
     {"encoder": r"encoder\.block.*\.SelfAttention$", "decoder": r"decoder\.block.*\.SelfAttention$"}, sequence_pair),
    ("mt5", hf.MT5ForConditionalGeneration,
     hf.MT5Config(vocab_size=61, d_model=48, d_kv=8, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0),
     {"encoder": r"encoder\.block.*\.SelfAttention$", "decoder": r"decoder\.block.*\.SelfAttention$"}, sequence_pair),
    ("bart", hf.BartForConditionalGeneration, hf.BartConfig(**SEQ2SEQ), BARTISH, sequence_pair),
    ("mbart", hf.MBartForConditionalGeneration, hf.MBartConfig(**SEQ2SEQ), BARTISH, sequence_pair),
    ("pegasus", hf.PegasusForConditionalGeneration, hf.PegasusConfig(**SEQ2SEQ), BARTISH, sequence_pair),
    ("marian", hf.MarianMTModel, hf.MarianConfig(**SEQ2SEQ, decoder_vocab_size=61, decoder_start_token_id=0), BARTISH, sequence_pair),
    ("m2m-100", hf.M2M100ForConditionalGeneration, hf.M2M100Config(**SEQ2SEQ), BARTISH, sequence_pair),
    ("whisper", hf.WhisperForConditionalGeneration,
     hf.WhisperConfig(vocab_size=61, d_model=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=6, decoder_attention_heads=4,
                      encoder_ffn_dim=40, decoder_ffn_dim=40, num_mel_bins=8, max_source_positions=6, max_target_positions=16,
                      decoder_start_token_id=1, **EOS), BARTISH, "whisper"),
    ("speech-to-text", hf.Speech2TextForConditionalGeneration,
     hf.Speech2TextConfig(**{k: v for k, v in SEQ2SEQ.items() if k != "max_position_embeddings"}, max_source_positions=64, max_target_positions=32,
                          input_feat_per_channel=8, conv_channels=16, num_conv_layers=1, conv_kernel_sizes=(3,), decoder_start_token_id=1),
     BARTISH, "speech_to_text"),
    ("speecht5", hf.SpeechT5ForTextToSpeech,
     hf.SpeechT5Config(vocab_size=61, hidden_size=48, encoder_layers=2, decoder_layers=3, encoder_attention_heads=6, decoder_attention_heads=4,
                       encoder_ffn_dim=40, decoder_ffn_dim=40, num_mel_bins=8, speech_decoder_prenet_units=16, speech_decoder_postnet_units=16,
                       speaker_embedding_dim=8, max_speech_positions=64, max_text_positions=64, reduction_factor=1,
                       speech_decoder_postnet_layers=2, encoder_max_relative_position=4, speech_decoder_prenet_dropout=0.0),
     {"encoder": r"wrapped_encoder\.layers\.\d+\.attention$", "decoder": r"wrapped_decoder\.layers\.\d+\.self_attn$"}, "speecht5"),
    ("detr", hf.DetrForObjectDetection,
     hf.DetrConfig(use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=small_resnet(), d_model=48, encoder_layers=2,
                   decoder_layers=3, encoder_attention_heads=6, decoder_attention_heads=4, encoder_ffn_dim=40, decoder_ffn_dim=40, num_queries=5),
     BARTISH, pixels(64)),
    ("mask2former", hf.Mask2FormerForUniversalSegmentation,
     hf.Mask2FormerConfig(backbone_config=small_swin(), feature_size=64, mask_feature_size=64, hidden_dim=64, encoder_feedforward_dim=40,
                          dim_feedforward=40, decoder_layers=4, num_attention_heads=4, num_queries=5, encoder_layers=1),
     {"decoder": r"decoder\.layers\.\d+\.self_attn$"}, pixels(64), ["sequence-first"]),
    ("musicgen", hf.MusicgenForConditionalGeneration, "musicgen",
     {"text": r"text_encoder.*SelfAttention$", "decoder": r"decoder\.layers\.\d+\.self_attn$"}, "musicgen"),
    # ---- vision
    ("vit", hf.ViTForImageClassification, hf.ViTConfig(**VISION), VIT, pixels()),
    ("deit", hf.DeiTForImageClassification, hf.DeiTConfig(**VISION), VIT, pixels()),
    ("vit-mae", hf.ViTMAEForPreTraining,
     hf.ViTMAEConfig(**VISION, decoder_hidden_size=24, decoder_intermediate_size=40, decoder_num_attention_heads=3, decoder_num_hidden_layers=2,
                     mask_ratio=0.25), {"encoder": r"^vit\..*\.attention$", "decoder": r"^decoder\..*\.attention$"}, pixels()),
    ("beit", hf.BeitForImageClassification, hf.BeitConfig(**VISION, use_relative_position_bias=True), VIT, pixels()),
    ("dinov2", hf.Dinov2Model, hf.Dinov2Config(**{k: v for k, v in VISION.items() if k != "intermediate_size"}, mlp_ratio=1), VIT, pixels()),
    ("dinov2-registers", hf.Dinov2WithRegistersModel,
     hf.Dinov2WithRegistersConfig(**{k: v for k, v in VISION.items() if k != "intermediate_size"}, mlp_ratio=1, num_register_tokens=2), VIT, pixels()),
    ("yolos", hf.YolosForObjectDetection, hf.YolosConfig(**{**VISION, "image_size": [16, 16]}, num_detection_tokens=4), {"encoder": r"attention\.attention$"}, pixels()),
    ("vit-msn", hf.ViTMSNModel, hf.ViTMSNConfig(**VISION), VIT, pixels()),
    ("imagegpt", hf.ImageGPTForCausalImageModeling, hf.ImageGPTConfig(vocab_size=61, n_positions=32, n_embd=48, n_layer=2, n_head=6), HEADS_FIRST, causal),
    ("clip", hf.CLIPModel,
     hf.CLIPConfig(text_config=dict(**BERT, **{k: v for k, v in EOS.items() if k != "pad_token_id"}), vision_config=tower(num_channels=3), projection_dim=16),
     {"text": r"text_model.*\.self_attn$", "vision": r"vision_model.*\.self_attn$"}, "clip"),
    ("clip-vision", hf.CLIPVisionModel, hf.CLIPVisionConfig(**tower(num_channels=3)), {"vision": r"\.self_attn$"}, pixels()),
    ("clip-text", hf.CLIPTextModel, hf.CLIPTextConfig(**BERT, **{k: v for k, v in EOS.items() if k != "pad_token_id"}),
     {"text": r"\.self_attn$"}, text()),
    ("siglip", hf.SiglipModel, hf.SiglipConfig(text_config=BERT, vision_config=tower()),
     {"text": r"text_model.*\.self_attn$", "vision": r"vision_model.*\.self_attn$"}, "clip"),
    ("git", hf.GitForCausalLM, hf.GitConfig(**BERT, **{k: v for k, v in EOS.items() if k != "pad_token_id"}, vision_config=tower(num_channels=3)),
     {"text": r"^git\.encoder\.layer\.\d+\.attention\.self$", "vision": r"\.self_attn$"}, "git"),
    ("sam", hf.SamModel,
     hf.SamConfig(vision_config=dict(hidden_size=48, output_channels=16, num_hidden_layers=2, num_attention_heads=6, image_size=16, patch_size=4,
                                     window_size=2, global_attn_indexes=[1], mlp_dim=40),
                  prompt_encoder_config=dict(hidden_size=16, image_size=16, patch_size=4, mask_input_channels=4),
                  mask_decoder_config=dict(hidden_size=16, mlp_dim=16, num_hidden_layers=1, num_attention_heads=2, iou_head_hidden_dim=16)),
     {"vision": r"vision_encoder\.layers\.\d+\.attn$"}, "sam"),
    ("mllama", hf.MllamaForConditionalGeneration,
     hf.MllamaConfig(vision_config=dict(hidden_size=48, num_hidden_layers=2, num_global_layers=1, attention_heads=4, image_size=16, patch_size=8,
                                        intermediate_size=40, intermediate_layers_indices=[0], vision_output_dim=96, max_num_tiles=1,
                                        supported_aspect_ratios=[[1, 1]]),
                     text_config=dict(**{**GROUPED, "num_hidden_layers": 4}, cross_attention_layers=[1], **EOS,
                                      rope_parameters=LLAMA3), image_token_index=60),
     {"vision": r"vision_model.*\.self_attn$", "text": r"language_model\.layers\.\d+\.self_attn$"}, "mllama"),
    ("blip", hf.BlipForConditionalGeneration,
     hf.BlipConfig(text_config=dict(**BERT, encoder_hidden_size=48, projection_dim=16, bos_token_id=1, eos_token_id=2, sep_token_id=3),
                   vision_config=tower(projection_dim=16), projection_dim=16, image_text_hidden_size=16),
     {"text": r"attention\.self$", "vision": r"vision_model.*\.self_attn$"}, "blip"),
    # ---- audio
    ("hubert", hf.HubertModel, hf.HubertConfig(**AUDIO), SPEECH, audio),
    ("wav2vec2", hf.Wav2Vec2ForCTC, hf.Wav2Vec2Config(**AUDIO, do_stable_layer_norm=True, pad_token_id=0), SPEECH, audio),
    ("wavlm", hf.WavLMModel, hf.WavLMConfig(**AUDIO), SPEECH, audio),
    ("unispeech", hf.UniSpeechModel, hf.UniSpeechConfig(**AUDIO), SPEECH, audio),
    ("unispeech-sat", hf.UniSpeechSatModel, hf.UniSpeechSatConfig(**AUDIO), SPEECH, audio),
    ("data2vec-audio", hf.Data2VecAudioModel, hf.Data2VecAudioConfig(**AUDIO), SPEECH, audio),
    ("audio-spectrogram", hf.ASTModel,
     hf.ASTConfig(**{k: v for k, v in VISION.items() if k not in ("image_size", "num_channels")}, max_length=16, num_mel_bins=16, frequency_stride=8, time_stride=8),
     VIT, "ast"),
]
